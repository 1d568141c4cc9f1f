#include "values/value.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "values/conversions.h"
#include "values/operators.h"
#include "values/patch.h"
#include "values/storages.h"
#include "values/unspecified.h"

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

// While it lives, random operators draw from a seed of ours; the program's own generator is put
// back.
class Seeded {
 public:
  explicit Seeded(const Node& node) : random_(node.random) {
    if (!random_) return;
    state_ = generator_.get_state();
    generator_.set_current_seed(node.sequence);
  }
  Seeded(const Seeded&) = delete;
  Seeded& operator=(const Seeded&) = delete;
  ~Seeded() {
    if (random_) generator_.set_state(state_);
  }

 private:
  bool random_;
  at::Generator generator_ = at::detail::getDefaultCPUGenerator();
  at::Tensor state_;
};

using Lists = std::map<int, std::vector<at::Tensor>>;
using Parts = std::map<std::pair<int, int>, std::vector<at::Tensor>>;

at::Tensor sparse_of(const Sparse& what, const std::vector<at::Tensor>& parts) {
  const auto options = parts.back().options().layout(what.layout);
  if (what.layout == at::kSparse)
    return at::_sparse_coo_tensor_unsafe(parts[0], parts[1], what.sizes, options, what.coalesced);
  return at::_sparse_compressed_tensor_unsafe(parts[0], parts[1], parts[2], what.sizes, options);
}

void put_list(const Node& node, int argument, const std::vector<at::Tensor>& tensors,
              std::vector<c10::IValue>& stack) {
  if (!node.op->optional_list[static_cast<std::size_t>(argument)]) {
    stack[static_cast<std::size_t>(argument)] = c10::List<at::Tensor>(tensors);
    return;
  }
  c10::List<std::optional<at::Tensor>> optional;
  for (const auto& tensor : tensors)
    optional.push_back(tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt);
  stack[static_cast<std::size_t>(argument)] = optional;
}

// `targets`: the bytes that the outputs are written in, for those that are arguments.
std::vector<c10::IValue> stack_of(const Node& node, const std::vector<at::Tensor>& targets) {
  std::vector<c10::IValue> stack = node.arguments;
  Lists lists;
  for (std::size_t i = 0; i < node.list_sizes.size(); ++i)
    if (node.list_sizes[i] >= 0)
      lists[static_cast<int>(i)].resize(static_cast<std::size_t>(node.list_sizes[i]));
  Parts parts;
  const auto put = [&](int argument, int index, const at::Tensor& tensor) {
    if (index < 0) {
      stack[static_cast<std::size_t>(argument)] = tensor;
    } else {
      lists[argument][static_cast<std::size_t>(index)] = tensor;
    }
  };
  for (const Input& input : node.inputs) {
    at::Tensor tensor = input.constant;
    if (input.target >= 0) {
      tensor = tensor_in(targets[static_cast<std::size_t>(input.target)], input.view);
    } else if (input.value) {
      compute(*input.value);
      tensor = tensor_in(input.value->data, input.view);
    }
    if (input.part >= 0) {
      parts[{input.argument, input.index}].push_back(tensor);
    } else {
      put(input.argument, input.index, tensor);
    }
  }
  for (const Sparse& what : node.sparse)
    put(what.argument, what.index, sparse_of(what, parts.at({what.argument, what.index})));
  for (const auto& [argument, tensors] : lists) put_list(node, argument, tensors, stack);
  return stack;
}

bool run(const Node& node, std::vector<c10::IValue>& stack) {
  // An operator with several `out` arguments (kthvalue) returns references to what lay on the
  // stack, which PyTorch's boxing takes off it before it copies them: somebody must still have
  // them.
  const std::vector<c10::IValue> held = stack;
  try {
    const Seeded seeded(node);
    if (node.op->equivalent) {
      node.op->equivalent->call(stack);
    } else {
      node.op->handle->callBoxed(&stack);
    }
    return true;
  } catch (const std::exception&) {  // no such kernel on the CPU, or values that it refuses
    return false;
  }
}

at::Tensor whole_result_of(const std::vector<c10::IValue>& stack, const Output& output) {
  if (output.result < 0 || output.result >= static_cast<int>(stack.size())) return {};
  const c10::IValue& result = stack[static_cast<std::size_t>(output.result)];
  if (output.index < 0) return result.isTensor() ? result.toTensor() : at::Tensor();
  if (!result.isTensorList()) return {};
  const auto list = result.toTensorVector();
  return static_cast<std::size_t>(output.index) < list.size()
             ? list[static_cast<std::size_t>(output.index)]
             : at::Tensor();
}

at::Tensor result_of(const std::vector<c10::IValue>& stack, const Output& output) {
  const at::Tensor whole = whole_result_of(stack, output);
  if (output.part < 0) return whole;
  const auto parts = parts_of(whole);
  return static_cast<std::size_t>(output.part) < parts.size()
             ? parts[static_cast<std::size_t>(output.part)]
             : at::Tensor();
}

bool is_unsure_input(const Input& input) {
  return input.value && is_unsure(*input.value, input.view);
}

bool any_substituted(const Node& node) {
  bool any = node.substituted || std::ranges::any_of(node.inputs, is_unsure_input);
  for (const Output& output : node.outputs) any |= output.before && output.before->substituted;
  return any;
}

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

// Whether a factorisation went well. Of values that nobody knows it is taken to have, as gradients
// are taken to be finite.
bool tells_success(const Node& node, const Output& output) {
  if (output.result < 0 || !node.op->handle) return false;
  const auto& returns = node.op->handle->schema().returns();
  const auto index = static_cast<std::size_t>(output.result);
  return index < returns.size() &&
         (returns[index].name() == "info" || returns[index].name() == "infos");
}

void compute_node(Node& node) {
  std::vector<at::Tensor> targets;
  for (const Output& output : node.outputs) {
    if (output.shared >= 0) {
      targets.push_back(targets[static_cast<std::size_t>(output.shared)]);
      continue;
    }
    if (output.before) compute(*output.before);
    targets.push_back(output.before
                          ? output.before->data.clone()
                          : at::zeros({static_cast<std::int64_t>(output.bytes)}, at::kByte));
  }
  std::vector<c10::IValue> stack = stack_of(node, targets);
  const bool substituted = any_substituted(node);
  const auto purpose = purpose_of(node);
  const std::vector<c10::IValue> arguments = stack;
  const bool done = run(node, stack);
  std::vector<Unspecified> open;
  if (done && !substituted) open = unspecified_in(node, arguments, stack);
  const bool beyond = done && !substituted && converts_beyond_range(node, arguments);
  if (beyond) open.push_back({-1, "an integer beyond its range", /*unsure=*/true});
  std::vector<bool> right(node.outputs.size(), done);
  for (std::size_t i = 0; i < node.outputs.size() && done; ++i) {
    const Output& output = node.outputs[i];
    if (output.result < 0) continue;
    const at::Tensor result = result_of(stack, output);
    right[i] = result.defined() && result.sizes() == c10::IntArrayRef(output.view.sizes);
    if (right[i] && !(substituted && tells_success(node, output)))
      tensor_in(targets[i], output.view).copy_(result);
    if (output.shared >= 0 && !right[i]) right[static_cast<std::size_t>(output.shared)] = false;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Output& output = node.outputs[i];
    const auto value = output.value.lock();
    if (!value || output.shared >= 0) continue;
    finish(*value, right[i] ? targets[i] : made_up(value->bytes, {output.view.dtype, {}, 1}),
           substituted || !right[i] || beyond, choices_of(node, output, open));
    if (beyond && right[i]) value->unsure = bytes_of(node, i);
    if (node.op->purpose == Purpose::any) value->purpose = purpose;
  }
  node.inputs.clear();
  node.outputs.clear();
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
    for (const auto& [begin, end] : patch.arrival->unsure())
      value.unsure.emplace_back(begin + patch.offset, end + patch.offset);
  } else {
    compute(*patch.source);
    std::memcpy(to, static_cast<char*>(patch.source->data.data_ptr()) + patch.source_offset,
                patch.bytes);
    choices.add(patch.source->choices);
    value.purpose = purpose_of_both(value, *patch.source);
    value.unsure = unsure_after(patch);
  }
  const bool substituted = !value.unsure.empty();
  finish(value, std::move(data), substituted, std::move(choices));
}

}  // namespace

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

at::Tensor made_up(std::size_t bytes, const Substitute& what) {
  static auto generator = at::detail::createCPUGenerator(kSubstituteSeed);
  at::Tensor data = at::zeros({static_cast<std::int64_t>(bytes)}, at::kByte);
  const auto count = static_cast<std::int64_t>(bytes / c10::elementSize(what.dtype));
  if (count == 0) return data;
  auto elements = at::from_blob(data.data_ptr(), {count}, at::TensorOptions().dtype(what.dtype));
  if (what.element) {
    elements.fill_(*what.element);
  } else if (c10::isFloatingType(what.dtype) || c10::isComplexType(what.dtype)) {
    count == 1 ? elements.fill_(1) : elements.normal_(0, 1, generator);
  } else if (what.range > 1 && c10::isIntegralType(what.dtype, false)) {
    elements.random_(0, what.range, generator);
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
    if (const auto value = node.outputs[i].value.lock())
      finish(*value, tries[0][i], false, choices_of(node, node.outputs[i], open));
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
