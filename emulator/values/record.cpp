#include "values/record.h"

#include <algorithm>
#include <atomic>

#include "values/patch.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

// A longer chain of recorded operators is computed, or cut.
constexpr int kDeepest = 64;

}  // namespace

bool is_small(const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return bytes > 0 && bytes <= kLargest;
}

std::size_t largest_copied(at::ScalarType dtype) {
  return dtype == at::kByte ? emulator::kLargestCopied : largest_of(dtype);
}

std::size_t largest_for(const Operator& op, at::ScalarType dtype) {
  return op.is_copy ? largest_copied(dtype) : largest_of(dtype);
}

bool may_have_value(const Operator& op, const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return bytes > 0 && bytes <= largest_for(op, tensor.scalar_type());
}

bool is_floating(const at::Tensor& tensor) {
  return c10::isFloatingType(tensor.scalar_type()) || c10::isComplexType(tensor.scalar_type());
}

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

ValuePtr value_of(const Node& node, std::size_t bytes) {
  auto value = std::make_shared<Value>();
  value->bytes = bytes;
  value->substituted = node.substituted;
  value->depth = node.depth;
  value->purpose = purpose_of(node);
  return value;
}

void put_substitute(const Operator& op, const at::Tensor& tensor, std::int64_t range,
                    std::int64_t most) {
  if (is_floating(tensor) || op.uninitialised || !is_small(tensor))
    return Storages::all().forget(base_of(tensor), bytes_of(tensor));
  const Substitute what{tensor.scalar_type(), op.is_all ? std::optional<double>(1) : std::nullopt,
                        tensor.scalar_type() == at::kLong ? range : 1,
                        tensor.element_size() >= 4 ? most : 0};
  Storages::all().put(base_of(tensor), unknown(bytes_of(tensor), what));
}

void end_chain(const Node& node, const std::vector<std::pair<at::Tensor, ValuePtr>>& values) {
  if (node.depth <= kDeepest) return;
  for (const auto& [tensor, value] : values) {
    if ((node.substituted && is_floating(tensor)) || !is_small(tensor)) {
      Storages::all().forget(base_of(tensor), bytes_of(tensor));
    } else if (!waits(value)) {
      compute(*value);
      value->depth = 0;
    }
  }
}

namespace {

struct Result {
  at::Tensor tensor;
  int result, index, part;
};

template <typename Visit>
void for_each_result(const std::vector<c10::IValue>& results, Visit visit) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].isTensor()) {
      visit(results[i].toTensor(), static_cast<int>(i), -1);
    } else if (results[i].isTensorList()) {
      const auto list = results[i].toListRef();
      for (std::size_t j = 0; j < list.size(); ++j)
        visit(list[j].toTensor(), static_cast<int>(i), static_cast<int>(j));
    }
  }
}

// Results that are neither views nor large.
std::vector<Result> results_to_record(const Call& call, const std::vector<c10::IValue>& results) {
  std::vector<Result> chosen;
  const bool direct = call.node->op->direct;
  const auto choose = [&](const at::Tensor& tensor, int result, int index, int part) {
    if (!has_storage(tensor) || !tensor.is_cuda() || !may_have_value(*call.node->op, tensor))
      return;
    if (std::ranges::find(call.storages, tensor.storage().unsafeGetStorageImpl()) !=
        call.storages.end())
      return;
    // What a composite returns was mostly made, and recorded, by an operator that it called.
    if (!direct && Storages::all().find(base_of(tensor), bytes_of(tensor))) return;
    chosen.push_back({tensor, result, index, part});
  };
  for_each_result(results, [&](const at::Tensor& tensor, int result, int index) {
    choose(tensor, result, index, -1);
    int part = 0;
    for (const at::Tensor& one : parts_of(tensor)) choose(one, result, index, part++);
  });
  return chosen;
}

// Whether substitutes for what the call needs are worth their cost.
bool worth_recording(const Call& call, const std::vector<Result>& results) {
  if (call.lost || !is_computable(call)) return false;
  const bool known = !call.node->substituted && !call.node->random;
  const bool small =
      std::ranges::all_of(results, [](const Result& result) { return is_small(result.tensor); });
  if (call.largest_absent_bytes == 0) return known || small;
  if (!call.node->op->direct) return false;
  bool floating = true;
  std::size_t largest = call.largest_absent_bytes;
  for (const Result& result : results) {
    floating &= is_floating(result.tensor);
    largest = std::max(largest, bytes_of(result.tensor));
  }
  return !floating || largest <= kPlausible;
}

void put_uniform_results(const Call& call, const std::vector<c10::IValue>& results) {
  const auto& elements = call.uniform->results;
  for_each_result(results, [&](const at::Tensor& tensor, int result, int) {
    if (!has_storage(tensor) || !tensor.is_cuda()) return;
    const auto at = static_cast<std::size_t>(result);
    if (at < elements.size() && elements[at]) {
      put_uniform(tensor, *elements[at]);
    } else {
      forget_storage(tensor);
    }
  });
}

// Whether the tensor lies in one piece.
bool is_one_piece(const Input& input, at::ScalarType dtype, std::size_t& bytes) {
  const View& view = input.view;
  std::int64_t count = 1;
  for (std::size_t i = view.sizes.size(); i-- > 0; count *= view.sizes[i])
    if (view.sizes[i] != 1 && view.strides[i] != count) return false;
  bytes = static_cast<std::size_t>(count) * c10::elementSize(dtype);
  return view.dtype == dtype && !view.conjugate && !view.negative &&
         (input.value || input.absent_base != 0);
}

// Some known and some unknown tensors, one behind the other (cat, and stack by it): each stays what
// it is, as where counts travel beside statistics.
bool record_pieces(const Call& call, const std::vector<Result>& results) {
  const Node& node = *call.node;
  if (node.op->name != "aten::cat" || call.lost || results.size() != 1) return false;
  if (!node.substituted && call.largest_absent_bytes == 0) return false;
  const at::Tensor& to = results[0].tensor;
  if (!covers_storage(to) || !to.is_contiguous() || bytes_of(to) > kPlausible) return false;
  std::vector<Patch> patches;
  std::size_t offset = 0;
  bool known = false;
  for (const Input& input : node.inputs) {
    Patch& patch = patches.emplace_back();
    if (!is_one_piece(input, to.scalar_type(), patch.bytes)) return false;
    patch.offset = offset;
    patch.source =
        input.value ? input.value : unknown(input.absent_bytes, {input.view.dtype, {}, 1});
    patch.source_offset = static_cast<std::size_t>(input.view.offset_bytes);
    known |= !is_unsure(*patch.source, patch.source_offset, patch.source_offset + patch.bytes);
    offset += patch.bytes;
  }
  const auto dim = c10::maybe_wrap_dim(node.arguments[1].toInt(), to.dim());
  const bool rows = std::ranges::all_of(to.sizes().slice(0, static_cast<std::size_t>(dim)),
                                        [](std::int64_t size) { return size == 1; });
  if (!known || !rows || offset != bytes_of(to)) return false;
  for (Patch& patch : patches) put_patch(base_of(to), bytes_of(to), std::move(patch));
  return true;
}

// Batch normalisation's statistics, which it changes beside its results. False where one has no
// value.
bool add_hidden(Call& call) {
  Node& node = *call.node;
  std::vector<std::uint64_t> bases;
  for (const auto& [argument, tensor] : call.hidden) {
    const auto input = std::ranges::find(node.inputs, argument, &Input::argument);
    if (input == node.inputs.end() || !input->value || !has_storage(tensor)) return false;
    if (std::ranges::find(bases, base_of(tensor)) != bases.end()) return false;
    bases.push_back(base_of(tensor));
    Output output;
    output.before = std::move(input->value);
    output.view = input->view;
    output.bytes = bytes_of(tensor);
    input->value.reset();
    input->target = static_cast<int>(node.outputs.size());
    node.outputs.push_back(std::move(output));
  }
  return true;
}

using Values = std::vector<std::pair<at::Tensor, ValuePtr>>;

void put_hidden(const Call& call, Values& values) {
  for (std::size_t i = 0; i < call.hidden.size(); ++i) {
    Output& output = call.node->outputs[i];
    const auto value = value_of(*call.node, output.bytes);
    value->node = call.node;
    output.value = value;
    const at::Tensor& tensor = call.hidden[i].second;
    Storages::all().put(base_of(tensor), value);
    values.emplace_back(tensor, value);
  }
}

// Several may lie in one storage, as the gradients of a recurrent network's weights do: it has one
// value then.
void add_output(const std::shared_ptr<Node>& node, const Result& result, std::int64_t most,
                Values& values) {
  const auto base = base_of(result.tensor);
  Output output{result.result,
                result.index,
                result.part,
                nullptr,
                view_of(result.tensor),
                bytes_of(result.tensor),
                {}};
  const auto same =
      std::ranges::find(values, base, [](const auto& one) { return base_of(one.first); });
  if (same != values.end()) {
    output.value = same->second;
    const auto is_first = [&](const Output& other) { return other.value.lock() == same->second; };
    output.shared =
        static_cast<int>(std::ranges::find_if(node->outputs, is_first) - node->outputs.begin());
    node->outputs.push_back(std::move(output));
    return;
  }
  const auto value = value_of(*node, output.bytes);
  value->node = node;
  if (c10::isIntegralType(result.tensor.scalar_type(), false)) value->substitute.most = most;
  output.value = value;
  node->outputs.push_back(std::move(output));
  Storages::all().put(base, value);
  values.emplace_back(result.tensor, value);
}

// False where nothing is recorded that computes the results.
bool record_computed(Call& call, const std::vector<c10::IValue>& results) {
  if (call.uniform) {
    put_uniform_results(call, results);
    return false;
  }
  const auto node = call.node;
  if (node->op->uninitialised)
    for_each_result(results, [](const at::Tensor& tensor, int, int) { add_to_collective(tensor); });
  const auto chosen = results_to_record(call, results);
  if (chosen.empty()) return false;
  if (record_pieces(call, chosen)) return false;
  if (node->op->uninitialised || !worth_recording(call, chosen) || !add_hidden(call)) {
    for (const Result& result : chosen)
      put_substitute(*node->op, result.tensor, call.range, call.most);
    return false;
  }
  fill_absent(call);
  node->substituted |= node->random;
  node->sequence = next_sequence();
  Values values;
  put_hidden(call, values);
  for (const Result& result : chosen) add_output(node, result, call.most, values);
  end_chain(*node, values);
  return true;
}

}  // namespace

void record_results(Call& call, const std::vector<c10::IValue>& results) {
  if (record_computed(call, results)) return;
  for (const auto& [argument, tensor] : call.hidden) forget_storage(tensor);
}

}  // namespace peakbench::values
