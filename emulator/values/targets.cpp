#include <algorithm>
#include <set>
#include <unordered_map>

#include "values/patch.h"
#include "values/record.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

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

// A device tensor without a value, which the operator reads.
bool is_missing(const Operator& op, const Input& input) {
  return input.absent_base != 0 && !op.writes_wholly(input.argument);
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
  value->purpose = Purpose::finite_check;
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
      put_substitute(*call.node->op, tensor, call.range, call.most);
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
  if (!input || !has_storage(tensor) || !tensor.is_cuda() || !may_have_value(op, tensor))
    return false;
  const bool overwritten = op.writes_wholly(place.first);
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
    if (!output.before && output.bytes > (is_floating(tensor) ? kPlausible : kLargest))
      return false;
    output.arbitrary = !output.before;
    if (!output.before) output.before = unknown(output.bytes, {tensor.scalar_type(), {}, 1});
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

// Whether it writes values at places, or wholly, and never looks at what was there. What a
// comparison or a clamp makes of a few contents says nothing of the others.
bool only_places(const Call& call) {
  const Operator& op = *call.node->op;
  const auto& arguments = call.node->arguments;
  const bool adds = op.accumulate >= 0 &&
                    arguments[static_cast<std::size_t>(op.accumulate)].isBool() &&
                    arguments[static_cast<std::size_t>(op.accumulate)].toBool();
  return (op.places && !adds) || std::ranges::all_of(call.target_places, [&](const auto& place) {
           return op.writes_wholly(place.first);
         });
}

// Of targets that nobody knows: whether it is known all the same what is in them now, as where a
// permutation is written into new memory.
bool settled(const Call& call) {
  Node& node = *call.node;
  bool arbitrary = false, small = true;
  for (const Output& output : node.outputs) {
    arbitrary |= output.arbitrary;
    small &= output.bytes <= kPlausible;
  }
  if (!arbitrary) return false;
  const bool writes_tensors = node.inputs.size() > node.outputs.size();
  if (small && writes_tensors && !node.substituted && only_places(call) && settle(node))
    return true;
  node.substituted = true;
  for (const Output& output : node.outputs)
    if (const auto value = output.value.lock()) value->substituted = true;
  return false;
}

// A copy of bytes as they lie (not of a conjugate), within the card: what nobody has written of
// them stays so.
bool record_plain_copy(const Call& call) {
  if (!call.node->op->is_copy || call.targets.size() != 1) return false;
  const at::Tensor& to = call.targets[0];
  const auto from = std::ranges::find(call.node->inputs, 1, &Input::argument);
  if (from == call.node->inputs.end() || !from->value || !has_storage(to) ||
      !may_have_value(*call.node->op, to))
    return false;
  const View view = view_of(to);
  if (view.dtype != from->view.dtype || view.sizes != from->view.sizes ||
      view.strides != from->view.strides || from->view.conjugate || from->view.negative ||
      !to.is_non_overlapping_and_dense())
    return false;
  Patch patch;
  patch.offset = static_cast<std::size_t>(view.offset_bytes);
  patch.bytes = to.nbytes();
  patch.source = from->value;
  patch.source_offset = static_cast<std::size_t>(from->view.offset_bytes);
  put_patch(base_of(to), bytes_of(to), std::move(patch));
  return true;
}

void put_uniform_targets(const Call& call) {
  const auto& elements = call.uniform->targets;
  for (std::size_t i = 0; i < call.targets.size(); ++i) {
    const at::Tensor& tensor = call.targets[i];
    const bool whole = has_storage(tensor) && covers_storage(tensor);
    if (whole && i < elements.size() && elements[i]) {
      put_uniform(tensor, *elements[i]);
    } else {
      forget_storage(tensor);
    }
  }
}

bool rests_on_unknown(const Node& node) {
  return node.substituted || std::ranges::any_of(node.outputs, &Output::arbitrary);
}

bool any_floating_target(const Call& call) {
  return std::ranges::any_of(call.targets, is_floating);
}

}  // namespace

void record_targets(Call& call) {
  const auto node = call.node;
  const Operator& op = *node->op;
  if (call.uniform) return put_uniform_targets(call);
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
  node->substituted |= node->random;
  // A check of gradients that nobody knows finds nothing, whatever plausible ones would do.
  if (op.kept_target >= 0 && rests_on_unknown(*node)) return lose_targets(call);
  if (node->substituted && !std::ranges::all_of(call.targets, is_small)) return lose_targets(call);
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
  if (!settled(call)) end_chain(*node, values);
}

}  // namespace peakbench::values
