#include "values/record.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <unordered_map>

#include "values/exchange.h"
#include "values/patch.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

// Up to here, floating-point numbers that nobody knows get substitutes that are computed with: the
// probabilities of a policy, the logits of a router. Activations and gradients are mostly larger.
constexpr std::size_t kPlausible = 64 << 10;
// A longer chain of recorded operators is computed, or cut.
constexpr int kDeepest = 64;

std::uint64_t next_sequence() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

bool is_small(const at::Tensor& tensor) {
  const auto bytes = bytes_of(tensor);
  return bytes > 0 && bytes <= kLargest;
}

bool is_floating(const at::Tensor& tensor) {
  return c10::isFloatingType(tensor.scalar_type()) || c10::isComplexType(tensor.scalar_type());
}

// What is made of nothing unknown but checks for finite values is one itself.
Purpose purpose_of(const Node& node) {
  int checks = 0, others = node.op->random;
  const auto look = [&](const ValuePtr& value) {
    if (value && value->substituted) ++(value->purpose == Purpose::finite_check ? checks : others);
  };
  for (const Input& input : node.inputs) look(input.value);
  for (const Output& output : node.outputs) look(output.before);
  return checks && !others ? Purpose::finite_check : Purpose::any;
}

ValuePtr value_of(const Node& node, std::size_t bytes) {
  auto value = std::make_shared<Value>();
  value->bytes = bytes;
  value->substituted = node.substituted;
  value->depth = node.depth;
  value->purpose = purpose_of(node);
  return value;
}

struct Result {
  at::Tensor tensor;
  int result, index, part;
};

template <typename Visit>
void for_each_tensor(const std::vector<c10::IValue>& results, Visit visit) {
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
    if (!has_storage(tensor) || !tensor.is_cuda() || !is_small(tensor)) return;
    if (std::ranges::find(call.storages, tensor.storage().unsafeGetStorageImpl()) !=
        call.storages.end())
      return;
    // What a composite returns was mostly made, and recorded, by an operator that it called.
    if (!direct && Storages::all().find(base_of(tensor), bytes_of(tensor))) return;
    chosen.push_back({tensor, result, index, part});
  };
  for_each_tensor(results, [&](const at::Tensor& tensor, int result, int index) {
    choose(tensor, result, index, -1);
    int part = 0;
    for (const at::Tensor& one : parts_of(tensor)) choose(one, result, index, part++);
  });
  return chosen;
}

// Whether substitutes for what the call needs are worth their cost.
bool worth_recording(const Call& call, const std::vector<Result>& results) {
  if (call.lost || !is_computable(call)) return false;
  if (call.largest_absent_bytes == 0) return true;
  if (!call.node->op->direct) return false;
  bool floating = true;
  std::size_t largest = call.largest_absent_bytes;
  for (const Result& result : results) {
    floating &= is_floating(result.tensor);
    largest = std::max(largest, bytes_of(result.tensor));
  }
  return !floating || largest <= kPlausible;
}

// The node's values are in place: a chain that has become long ends here.
void end_chain(const Node& node, const std::vector<std::pair<at::Tensor, ValuePtr>>& values) {
  if (node.depth <= kDeepest) return;
  for (const auto& [tensor, value] : values) {
    if (node.substituted && is_floating(tensor)) {
      Storages::all().forget(base_of(tensor), bytes_of(tensor));
    } else if (!waits(value)) {
      compute(*value);
      value->depth = 0;
    }
  }
}

bool covers_storage(const at::Tensor& tensor) {
  return tensor.nbytes() == bytes_of(tensor) && tensor.is_non_overlapping_and_dense();
}

bool is_list_operator(const Call& call) {
  return !call.target_places.empty() && call.target_places[0].second >= 0;
}

std::size_t length_of(const c10::IValue& value) {
  return value.isList() ? value.toListRef().size() : 0;
}

c10::IValue filtered(const c10::IValue& value, const std::vector<bool>& keep) {
  const auto list = value.toList();
  c10::impl::GenericList out(list.elementType());
  for (std::size_t i = 0; i < keep.size(); ++i)
    if (keep[i]) out.push_back(list.get(i));
  return out;
}

bool is_overwritten(const Operator& op, int argument) {
  return op.writes[static_cast<std::size_t>(argument)] &&
         (op.overwrites || op.is_out[static_cast<std::size_t>(argument)]);
}

// A device tensor without a value, which the operator reads.
bool is_missing(const Operator& op, const Input& input) {
  return input.absent_base != 0 && !is_overwritten(op, input.argument);
}

// Positions that write in a storage in which another that is left out writes are left out, too.
void leave_out_shared(const Call& call, std::vector<bool>& keep) {
  std::set<std::uint64_t> lost;
  for (bool more = true; more;) {
    more = false;
    for (std::size_t i = 0; i < call.targets.size(); ++i) {
      const auto [argument, index] = call.target_places[i];
      if (call.node->list_sizes[static_cast<std::size_t>(argument)] !=
              static_cast<int>(keep.size()) ||
          !has_storage(call.targets[i]))
        continue;
      const auto at = static_cast<std::size_t>(index);
      if (!keep[at]) {
        more |= lost.insert(base_of(call.targets[i])).second;
      } else if (lost.contains(base_of(call.targets[i]))) {
        keep[at] = false;
        more = true;
      }
    }
  }
}

// Of an operator on lists of tensors (an optimizer's): the positions where everything has a value.
std::vector<bool> known_positions(const Call& call, std::size_t length) {
  std::vector<bool> keep(length, true);
  for (const Input& input : call.node->inputs)
    if (input.index >= 0 && is_missing(*call.node->op, input) &&
        call.node->list_sizes[static_cast<std::size_t>(input.argument)] == static_cast<int>(length))
      keep[static_cast<std::size_t>(input.index)] = false;
  if (std::ranges::find(keep, false) != keep.end()) leave_out_shared(call, keep);
  return keep;
}

void keep_positions(Call& call, const std::vector<bool>& keep) {
  Node& node = *call.node;
  const auto length = static_cast<int>(keep.size());
  std::vector<int> place(keep.size());
  int kept = 0;
  for (std::size_t i = 0; i < keep.size(); ++i) place[i] = keep[i] ? kept++ : -1;
  const auto full = [&](int argument) {
    return node.list_sizes[static_cast<std::size_t>(argument)] == length;
  };
  std::erase_if(node.inputs, [&](const Input& input) {
    return input.index >= 0 && full(input.argument) && !keep[static_cast<std::size_t>(input.index)];
  });
  for (Input& input : node.inputs)
    if (input.index >= 0 && full(input.argument))
      input.index = place[static_cast<std::size_t>(input.index)];
  std::vector<at::Tensor> targets;
  std::vector<std::pair<int, int>> places;
  for (std::size_t i = 0; i < call.targets.size(); ++i) {
    auto [argument, index] = call.target_places[i];
    const bool drop = index >= 0 && full(argument) && !keep[static_cast<std::size_t>(index)];
    if (drop) {
      forget_storage(call.targets[i]);
      continue;
    }
    if (index >= 0 && full(argument)) index = place[static_cast<std::size_t>(index)];
    targets.push_back(call.targets[i]);
    places.emplace_back(argument, index);
  }
  for (std::size_t i = 0; i < node.arguments.size(); ++i)
    if (length_of(node.arguments[i]) == keep.size())
      node.arguments[i] = filtered(node.arguments[i], keep);
  for (int& size : node.list_sizes)
    if (size == length) size = kept;
  call.targets = std::move(targets);
  call.target_places = std::move(places);
}

// Unknown gradients: what the operator would find in them is taken not to be there.
void keep_target(const Call& call, const at::Tensor& tensor) {
  const auto before = Storages::all().find(base_of(tensor), bytes_of(tensor));
  if (!before) return;
  compute(*before);
  auto value = known(before->data);
  value->substituted = true;
  Storages::all().put(base_of(tensor), value);
}

void lose_targets(const Call& call) {
  for (std::size_t i = 0; i < call.targets.size(); ++i) {
    const at::Tensor& tensor = call.targets[i];
    if (!has_storage(tensor) || !tensor.is_cuda()) {
      forget_storage(tensor);
    } else if (call.target_places[i].first == call.node->op->kept_target) {
      keep_target(call, tensor);
    } else {
      put_substitute(*call.node->op, tensor, call.range);
    }
  }
}

Input* input_of(Call& call, std::pair<int, int> place) {
  for (Input& input : call.node->inputs)
    if (input.argument == place.first && input.index == place.second) return &input;
  return nullptr;
}

// The first target in each storage: there may be several, as where an optimizer updates parameters
// that are views of one flat tensor.
using FirstTargets = std::unordered_map<std::uint64_t, int>;

// False when a target has no value to be changed and cannot get one.
bool add_target(Call& call, std::size_t i, FirstTargets& firsts) {
  const at::Tensor& tensor = call.targets[i];
  const Operator& op = *call.node->op;
  const auto place = call.target_places[i];
  Input* input = input_of(call, place);
  if (!input || !has_storage(tensor) || !tensor.is_cuda() || bytes_of(tensor) > kLargest)
    return false;
  const bool overwritten = is_overwritten(op, place.first);
  Output output;
  output.view = view_of(tensor);
  output.bytes = bytes_of(tensor);
  const auto [first, is_first] = firsts.emplace(base_of(tensor), static_cast<int>(i));
  if (!is_first) output.shared = first->second;
  if (overwritten && tensor.is_non_overlapping_and_dense()) {
    output.begin = static_cast<std::size_t>(output.view.offset_bytes);
    output.end = output.begin + tensor.nbytes();
  }
  if (output.shared >= 0) {
    const auto& before = call.node->outputs[static_cast<std::size_t>(output.shared)].before;
    if (before && !overwritten) call.node->substituted |= doubtful(*before, output.view);
  } else if (!overwritten || !covers_storage(tensor)) {
    output.before = Storages::all().find(base_of(tensor), output.bytes);
    // A part of new memory: of the rest, nothing is known yet.
    if (!output.before && output.end) output.before = untouched(output.bytes);
    if (!output.before && is_floating(tensor) && output.bytes > kPlausible) return false;
    output.arbitrary = !output.before;
    if (!output.before) output.before = unknown(output.bytes, {tensor.scalar_type(), false, 1});
    if (!output.arbitrary)
      call.node->substituted |=
          output.end ? doubtful(*output.before) : doubtful(*output.before, output.view);
    call.node->depth = std::max(call.node->depth, output.before->depth + 1);
  }
  input->view = output.view;
  input->value.reset();
  input->absent_base = 0;
  input->target = static_cast<int>(call.node->outputs.size());
  call.node->outputs.push_back(std::move(output));
  return true;
}

// Of targets that nobody knows: whether it is known all the same what is in them now, as where a
// permutation is written into new memory.
bool settled(Node& node) {
  bool arbitrary = false, small = true;
  for (const Output& output : node.outputs) {
    arbitrary |= output.arbitrary;
    small &= output.bytes <= kPlausible;
  }
  if (!arbitrary) return false;
  const bool writes_tensors = node.inputs.size() > node.outputs.size();
  if (small && writes_tensors && !node.substituted && settle(node)) return true;
  node.substituted = true;
  for (const Output& output : node.outputs)
    if (const auto value = output.value.lock()) value->substituted = true;
  return false;
}

// A copy of bytes as they lie, within the card: what nobody has written of them stays so.
bool record_plain_copy(const Call& call) {
  if (!call.node->op->is_copy || call.targets.size() != 1) return false;
  const at::Tensor& to = call.targets[0];
  const auto from = std::ranges::find(call.node->inputs, 1, &Input::argument);
  if (from == call.node->inputs.end() || !from->value || !has_storage(to) || !is_small(to))
    return false;
  const View view = view_of(to);
  if (view.dtype != from->view.dtype || view.sizes != from->view.sizes ||
      view.strides != from->view.strides || !to.is_non_overlapping_and_dense())
    return false;
  Patch patch;
  patch.offset = static_cast<std::size_t>(view.offset_bytes);
  patch.bytes = to.nbytes();
  patch.source = from->value;
  patch.source_offset = static_cast<std::size_t>(from->view.offset_bytes);
  put_patch(base_of(to), bytes_of(to), std::move(patch));
  return true;
}

bool any_floating_target(const Call& call) {
  return std::ranges::any_of(call.targets, is_floating);
}

}  // namespace

void put_substitute(const Operator& op, const at::Tensor& tensor, std::int64_t range) {
  if (is_floating(tensor) || op.uninitialised || !is_small(tensor))
    return Storages::all().forget(base_of(tensor), bytes_of(tensor));
  const Substitute what{tensor.scalar_type(), op.is_all,
                        tensor.scalar_type() == at::kLong ? range : 1};
  Storages::all().put(base_of(tensor), unknown(bytes_of(tensor), what));
}

void record_results(Call& call, const std::vector<c10::IValue>& results) {
  const auto chosen = results_to_record(call, results);
  if (chosen.empty()) return;
  const auto node = call.node;
  if (node->op->uninitialised)
    for (const Result& result : chosen) add_to_collective(result.tensor);
  if (node->op->uninitialised || !worth_recording(call, chosen)) {
    for (const Result& result : chosen) put_substitute(*node->op, result.tensor, call.range);
    return;
  }
  fill_absent(call);
  node->substituted |= node->op->random;
  node->sequence = next_sequence();
  std::vector<std::pair<at::Tensor, ValuePtr>> values;
  for (const Result& result : chosen) {
    const auto value = value_of(*node, bytes_of(result.tensor));
    value->node = node;
    node->outputs.push_back({result.result, result.index, result.part, nullptr,
                             view_of(result.tensor), value->bytes, value});
    Storages::all().put(base_of(result.tensor), value);
    values.emplace_back(result.tensor, value);
  }
  end_chain(*node, values);
}

void record_targets(Call& call) {
  const auto node = call.node;
  const Operator& op = *node->op;
  if (record_plain_copy(call)) return;
  if (is_list_operator(call) && op.computable && op.kept_target < 0) {
    const auto length = static_cast<std::size_t>(
        node->list_sizes[static_cast<std::size_t>(call.target_places[0].first)]);
    const auto keep = known_positions(call, length);
    keep_positions(call, keep);
    if (call.targets.empty()) return;
    // What was lost may have been in the positions that are left out.
    call.lost = std::ranges::any_of(node->inputs, [&](const Input& input) {
      const bool has_value = input.value || input.constant.defined() || input.absent_base != 0;
      return is_missing(op, input) || (input.index >= 0 && !has_value);
    });
    call.largest_absent_bytes = 0;
  }
  const bool possible = is_computable(call) && !call.lost &&
                        !(call.largest_absent_bytes > 0 && any_floating_target(call));
  if (!possible) return lose_targets(call);
  FirstTargets firsts;
  for (std::size_t i = 0; i < call.targets.size(); ++i)
    if (!add_target(call, i, firsts)) return lose_targets(call);
  fill_absent(call);
  node->substituted |= op.random;
  node->sequence = next_sequence();
  std::vector<std::pair<at::Tensor, ValuePtr>> values;
  for (std::size_t i = 0; i < node->outputs.size(); ++i) {
    Output& output = node->outputs[i];
    if (output.shared >= 0) {
      output.value = node->outputs[static_cast<std::size_t>(output.shared)].value;
      if (const auto value = output.value.lock())
        value->unwritten = without(value->unwritten, output.begin, output.end);
      continue;
    }
    const auto value = value_of(*node, output.bytes);
    value->node = node;
    if (output.before)
      value->unwritten = without(output.before->unwritten, output.begin, output.end);
    output.value = value;
    Storages::all().put(base_of(call.targets[i]), value);
    values.emplace_back(call.targets[i], value);
  }
  if (!settled(*node)) end_chain(*node, values);
}

}  // namespace peakbench::values
