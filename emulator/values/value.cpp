#include "values/value.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "core/values_hook.h"
#include "values/bounds.h"
#include "values/card_arithmetic.h"
#include "values/evaluate.h"
#include "values/operators.h"
#include "values/patch.h"
#include "values/storages.h"
#include "values/unspecified.h"

namespace peakbench::values {
namespace {

// More of them say no more: the value has its condition.
constexpr std::size_t kMostChoices = 16;

}  // namespace

void Choices::add(const Choice& choice) {
  if (choices_.size() < kMostChoices && std::ranges::find(choices_, choice) == choices_.end())
    choices_.push_back(choice);
}

void Choices::add(const Choices& others) {
  for (const Choice& choice : others.choices_) add(choice);
}

void Choices::tell(bool known) const {
  for (const Choice& choice : choices_)
    if (!choice.unsure || !known)
      peakbench_emulator_unspecified(choice.operation.c_str(), choice.what);
}

}  // namespace peakbench::values

// Of the OpenMP that PyTorch brings. What is computed here is too small for several threads, and
// once they have had work they wait for more at full speed, beside the program.
extern "C" {
__attribute__((weak)) int omp_get_max_threads();
__attribute__((weak)) void omp_set_num_threads(int);
}

namespace peakbench::values {
namespace {

thread_local int unseen = 0;

constexpr std::uint64_t kSubstituteSeed = 20261122;

// The same, and what the call itself leaves open of one of its outputs.
Choices choices_of(const Node& node, const Output& output, const std::vector<Unspecified>& open) {
  Choices choices = choices_of(node);
  for (const Unspecified& one : open)
    if (one.result < 0 || output.result < 0 || one.result == output.result)
      choices.add({node.op->name, one.what, one.unsure});
  return choices;
}

void finish(Value& value, at::Tensor data, bool substituted, Choices choices = {}) {
  value.data = std::move(data);
  value.choices = std::move(choices);
  value.substituted = substituted;
  value.node.reset();
  value.patch.reset();
}

// Where an output's elements lie in its storage; empty, which is anywhere, where others lie there.
Ranges bytes_of(const Node& node, std::size_t output) {
  const View& view = node.outputs[output].view;
  const auto shares = [&](const Output& other) { return other.shared == static_cast<int>(output); };
  if (std::ranges::any_of(node.outputs, shares) || std::ranges::count(view.sizes, 0) != 0)
    return {};
  std::int64_t last = 0;
  for (std::size_t i = 0; i < view.sizes.size(); ++i) last += (view.sizes[i] - 1) * view.strides[i];
  const auto begin = static_cast<std::size_t>(view.offset_bytes);
  return {{begin, begin + (static_cast<std::size_t>(last) + 1) * c10::elementSize(view.dtype)}};
}

void compute_node(Node& node) {
  Evaluation got = evaluate(node);
  const bool substituted = got.substituted;
  const auto purpose = purpose_of(node);
  const bool sure = got.done && !substituted;
  std::vector<Unspecified> open;
  if (sure) open = unspecified_in(node, got.arguments, got.results);
  const bool beyond = sure && converts_beyond_range(node, got.arguments);
  if (beyond) open.push_back({-1, "an integer beyond its range", /*unsure=*/true});
  auto rounded = sure ? rounded_in(node, got) : std::vector<Rounded>(node.outputs.size());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Output& output = node.outputs[i];
    const auto value = output.value.lock();
    if (!value || output.shared >= 0) continue;
    finish(*value, got.right[i] ? got.bytes[i] : made_up(value->bytes, {output.view.dtype, {}, 1}),
           substituted || !got.right[i] || beyond, choices_of(node, output, open));
    if (got.right[i]) value->rounded = std::move(rounded[i]);
    if (beyond && got.right[i]) value->unsure = bytes_of(node, i);
    if (node.op->purpose == Purpose::any) value->purpose = purpose;
  }
  node.inputs.clear();
  node.outputs.clear();
}

// Of the patched bytes what the source says, of the others what was there before.
Rounded rounded_after(const Patch& patch) {
  const Value *before = patch.before.get(), *source = patch.source.get();
  Rounded rounded;
  if (before) rounded.by = before->rounded.by;
  if (rounded.by.empty()) rounded.by = source->rounded.by;
  const auto is_open = [](const Value* one) {
    return one && one->rounded.any() && !one->rounded.is_bounded();
  };
  if (!rounded.any() || is_open(before) || is_open(source)) return rounded;
  const auto joined = [&](Side side, std::size_t bytes) {
    at::Tensor all = before ? bytes_on(*before, side).clone()
                            : at::zeros({static_cast<std::int64_t>(bytes)}, at::kByte);
    std::memcpy(static_cast<char*>(all.data_ptr()) + patch.offset,
                static_cast<const char*>(bytes_on(*source, side).data_ptr()) + patch.source_offset,
                patch.bytes);
    return all;
  };
  const auto bytes = before ? before->bytes : patch.offset + patch.bytes;
  rounded.low = joined(Side::low, bytes);
  rounded.high = joined(Side::high, bytes);
  return at::equal(rounded.low, rounded.high) ? Rounded{} : rounded;
}

void compute_patch(Value& value, const Patch& patch) {
  if (patch.before) compute(*patch.before);
  at::Tensor data = patch.before ? patch.before->data.clone()
                                 : at::zeros({static_cast<std::int64_t>(value.bytes)}, at::kByte);
  value.substituted = patch.before && patch.before->substituted;
  value.purpose = value.substituted ? patch.before->purpose : Purpose::any;
  Choices choices = patch.before ? patch.before->choices : Choices();
  auto* const to = static_cast<char*>(data.data_ptr()) + patch.offset;
  if (patch.arrival) {
    Value arrived;
    const int standing = patch.arrival->write(to);
    arrived.substituted = standing != kPeakbenchKnown;
    if (standing == kPeakbenchFinite) arrived.purpose = Purpose::finite_check;
    value.purpose = purpose_of_both(value, arrived);
    value.unsure = unsure_after(patch);
    if (patch.before) value.rounded = patch.before->rounded;
    for (const auto& [begin, end] : patch.arrival->unsure())
      value.unsure.emplace_back(begin + patch.offset, end + patch.offset);
  } else {
    compute(*patch.source);
    std::memcpy(to, static_cast<char*>(patch.source->data.data_ptr()) + patch.source_offset,
                patch.bytes);
    choices.add(patch.source->choices);
    value.rounded = rounded_after(patch);
    value.purpose = purpose_of_both(value, *patch.source);
    value.unsure = unsure_after(patch);
  }
  const bool substituted = !value.unsure.empty();
  finish(value, std::move(data), substituted, std::move(choices));
}

}  // namespace

void tell_of_failure(const std::exception& error) {
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  const auto* pytorchs = dynamic_cast<const c10::Error*>(&error);
  peakbench_emulator_failed(memory     ? "the host has not got the memory"
                            : pytorchs ? pytorchs->what_without_backtrace()
                                       : error.what());
}

Choices choices_of(const Node& node) {
  Choices choices;
  if (node.op->takes_shape) return choices;
  for (const Input& input : node.inputs)
    if (input.value) choices.add(input.value->choices);
  for (const Output& output : node.outputs)
    if (output.before) choices.add(output.before->choices);
  return choices;
}

Unseen::Unseen()
    : no_autograd_(c10::autograd_dispatch_keyset_with_ADInplaceOrView),
      no_autocast_(c10::autocast_dispatch_keyset),
      no_python_(c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot,
                                      c10::DispatchKey::PreDispatch})),
      no_tracing_(c10::DispatchKey::Tracer) {
  ++unseen;
  peakbench_emulator_own_work(1);
  if (omp_set_num_threads == nullptr || omp_get_max_threads == nullptr) return;
  threads_ = omp_get_max_threads();
  omp_set_num_threads(1);
}
Unseen::~Unseen() {
  if (threads_ != 0) omp_set_num_threads(threads_);
  peakbench_emulator_own_work(0);
  --unseen;
}
bool Unseen::now() { return unseen > 0; }

View view_of(const at::Tensor& tensor) {
  View view;
  view.dtype = tensor.scalar_type();
  view.offset_bytes =
      tensor.storage_offset() * static_cast<std::int64_t>(tensor.dtype().itemsize());
  view.sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
  view.strides.assign(tensor.strides().begin(), tensor.strides().end());
  view.conjugate = tensor.is_conj();
  view.negative = tensor.is_neg();
  return view;
}

at::Tensor tensor_in(const at::Tensor& bytes, const View& view) {
  at::Tensor tensor =
      at::from_blob(static_cast<char*>(bytes.data_ptr()) + view.offset_bytes, view.sizes,
                    view.strides, at::TensorOptions().dtype(view.dtype));
  if (view.conjugate) tensor = tensor._conj();
  return view.negative ? tensor._neg_view() : tensor;
}

namespace {

// A single number decides more often than one of many. No guess is like another one: what compares
// two of them would find them equal each time. The first ones have exponents and roots.
void guess_numbers(at::Tensor& elements, at::Generator& generator) {
  constexpr double kLarge = 40, kSmall = -5, kManyLarge = 100;
  const bool is_single = elements.numel() == 1;
  if (elements.is_complex()) {
    elements.normal_(0, 1, generator);
  } else if (guess() == 0 && is_single) {
    elements.fill_(1);
  } else if (guess() == kHighGuess) {
    is_single ? elements.uniform_(kLarge / 2, kLarge, generator)
              : elements.uniform_(0, kManyLarge, generator);
  } else if (guess() == kLowGuess && is_single) {
    elements.uniform_(kSmall, 1, generator);
  } else {
    elements.normal_(0, 1, generator);
  }
}

// The second guess lies between: what is not so of none and of all may be so of some.
void guess_integers(at::Tensor& elements, const Substitute& what, at::Generator& generator) {
  constexpr std::uint64_t kNoneGuess = 3;
  const auto most = guess() > 0 && what.most > 0 ? what.most : what.range - 1;
  if (most <= 0 || guess() == kNoneGuess) return;
  if (guess() == kHighGuess)
    elements.fill_(most);
  else
    elements.random_(0, most + 1, generator);
}

void guess_booleans(at::Tensor& elements, at::Generator& generator) {
  if (guess() == kHighGuess) elements.fill_(1);
  if (guess() >= kLowGuess) elements.random_(0, 2, generator);
}

}  // namespace

at::Tensor made_up(std::size_t bytes, const Substitute& what) {
  static auto generator = at::detail::createCPUGenerator(kSubstituteSeed + guess());
  at::Tensor data = at::zeros({static_cast<std::int64_t>(bytes)}, at::kByte);
  const auto count = static_cast<std::int64_t>(bytes / c10::elementSize(what.dtype));
  if (count == 0) return data;
  auto elements = at::from_blob(data.data_ptr(), {count}, at::TensorOptions().dtype(what.dtype));
  if (what.element) {
    elements.fill_(*what.element);
  } else if (c10::isFloatingType(what.dtype) || c10::isComplexType(what.dtype)) {
    guess_numbers(elements, generator);
  } else if (what.dtype == at::kBool) {
    guess_booleans(elements, generator);
  } else {
    guess_integers(elements, what, generator);
    if (what.most == 0) peakbench_emulator_made_up_unbounded();
  }
  return data;
}

ValuePtr known(at::Tensor bytes) {
  auto value = std::make_shared<Value>();
  value->bytes = static_cast<std::size_t>(bytes.numel());
  value->data = std::move(bytes);
  return value;
}

ValuePtr unknown(std::size_t bytes, const Substitute& substitute) {
  auto value = std::make_shared<Value>();
  value->bytes = bytes;
  value->substituted = true;
  value->substitute = substitute;
  return value;
}

void compute(Value& value) {
  if (value.data.defined()) return;
  const Unseen unseen_here;
  if (const auto node = value.node) compute_node(*node);
  if (const auto patch = value.patch) compute_patch(value, *patch);
  if (!value.data.defined()) finish(value, made_up(value.bytes, value.substitute), true);
}

bool settle(Node& node) {
  const Unseen unseen_here;
  std::vector<std::vector<at::Tensor>> tries;
  std::vector<Unspecified> open;
  std::vector<int> tried = {0x00, 0x01};  // zeros and small numbers
  if (std::ranges::none_of(node.outputs,
                           [](const Output& output) { return output.view.dtype == at::kBool; }))
    tried.push_back(0xFE);  // negative ones
  for (const int contents : tried) {
    auto& targets = tries.emplace_back();
    for (const Output& output : node.outputs) {
      if (output.shared >= 0) {
        targets.push_back(targets[static_cast<std::size_t>(output.shared)]);
        continue;
      }
      if (output.before && !output.arbitrary) compute(*output.before);
      targets.push_back(
          output.before && !output.arbitrary
              ? output.before->data.clone()
              : at::full({static_cast<std::int64_t>(output.bytes)}, contents, at::kByte));
    }
    auto stack = stack_of(node, targets);
    const auto arguments = stack;
    if (!run(node, stack) || converts_beyond_range(node, arguments)) return false;
    if (std::ranges::any_of(node.inputs, is_unsure_input)) return false;
    open = unspecified_in(node, arguments, stack);
  }
  for (const auto& other : tries)
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      if (!at::equal(tries[0][i], other[i])) return false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (const auto value = node.outputs[i].value.lock()) {
      finish(*value, tries[0][i], false, choices_of(node, node.outputs[i], open));
      value->rounded = rounded_like_inputs(node);
    }
  return true;
}

Purpose purpose_of(const Node& node) {
  int checks = 0, others = node.random;
  const auto look = [&](const ValuePtr& value) {
    if (value && value->substituted) ++(value->purpose == Purpose::finite_check ? checks : others);
  };
  for (const Input& input : node.inputs) look(input.value);
  for (const Output& output : node.outputs) look(output.before);
  return checks && !others ? Purpose::finite_check : Purpose::any;
}

Purpose purpose_of_both(const Value& value, const Value& source) {
  if (!value.substituted) return source.purpose;
  return !source.substituted || source.purpose == value.purpose ? value.purpose : Purpose::any;
}

bool call(const Node& node, std::vector<c10::IValue>& stack) {
  const Unseen unseen_here;
  stack = stack_of(node, {});
  return run(node, stack);
}

}  // namespace peakbench::values
