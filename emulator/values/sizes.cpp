#include "values/sizes.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string_view>

#include "core/values_hook.h"
#include "values/bounds.h"
#include "values/evaluate.h"
#include "values/outcomes.h"
#include "values/record.h"
#include "values/storages.h"
#include "values/unspecified.h"

namespace peakbench::values {
namespace {

thread_local const Size* told = nullptr;

std::int64_t elements_of(const View& view) {
  std::int64_t count = 1;
  for (const auto size : view.sizes) count *= size;
  return count;
}

// Of the product of two matrices.
std::int64_t most_entries(const std::vector<Sparse>& matrices) {
  if (matrices.size() < 2) return 0;  // of three, one is added to the product of the others
  const auto &left = matrices[matrices.size() - 2].sizes, &right = matrices.back().sizes;
  return left.size() == 2 && right.size() == 2 ? left[0] * right[1] : 0;
}

// Of each matrix in rows: its offsets, its columns, its values.
std::vector<std::int64_t> entries_of(const Call& call) {
  std::vector<std::int64_t> entries;
  for (const Input& input : call.node->inputs)
    if (input.part == 1)
      entries.push_back(input.constant.defined() ? input.constant.numel()
                                                 : elements_of(input.view));
  return entries;
}

std::int64_t neighbours_in_row(const Call& call) {
  const auto& sizes = call.node->inputs[0].view.sizes;
  const auto dim = call.node->arguments[static_cast<std::size_t>(call.node->op->dim)].toInt();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  return rank == 0 ? 0 : sizes[static_cast<std::size_t>(c10::maybe_wrap_dim(dim, rank))] - 1;
}

// As many rows as there can be.
std::int64_t most_rows(const Call& call) {
  if (call.node->inputs.empty()) return 0;
  const View& first = call.node->inputs[0].view;
  switch (call.size_of) {
    case SizeOf::boxes:
      return first.sizes.empty() ? 0 : first.sizes[0];
    case SizeOf::verdict:
      return 1;
    case SizeOf::mode:
      return neighbours_in_row(call);
    case SizeOf::product:
      return most_entries(call.node->sparse);
    case SizeOf::merged: {
      const auto entries = entries_of(call);
      return std::accumulate(entries.begin(), entries.end(), std::int64_t{0});
    }
    case SizeOf::coalesce:
      return first.sizes.size() < 2 ? 0 : first.sizes[1];
    default:
      return elements_of(first);
  }
}

// Something is always equal to itself: a result of no rows needs an input of none.
std::int64_t fewest_rows(const Call& call) {
  const SizeOf size_of = call.size_of;
  if (size_of == SizeOf::merged) {
    const auto entries = entries_of(call);
    return entries.empty() ? 0 : *std::ranges::max_element(entries);
  }
  return size_of == SizeOf::unique || size_of == SizeOf::coalesce
             ? std::min<std::int64_t>(most_rows(call), 1)
             : 0;
}

// The dimension of the result that has so many: of unique along one, that one.
std::int64_t counted_dim(const Call& call) {
  const Operator& op = *call.node->op;
  if (call.size_of != SizeOf::unique || op.dim < 0) return 0;
  const c10::IValue& dim = call.node->arguments[static_cast<std::size_t>(op.dim)];
  return dim.isInt() ? dim.toInt() : 0;
}

std::int64_t count_of(const Call& call, const std::vector<c10::IValue>& results) {
  if (results.empty()) return 0;
  if (results[0].isBool()) return results[0].toBool();
  if (!results[0].isTensor() || results[0].toTensor().dim() == 0) return 0;
  if (results[0].toTensor().layout() != at::kStrided) return results[0].toTensor()._nnz();
  return results[0].toTensor().size(counted_dim(call));
}

// Of the row that has the most: the kernel takes one after another, and frees what it took for it.
std::int64_t differing_neighbours(const Call& call) {
  const Unseen unseen;
  const at::Tensor self = stack_of(*call.node, {})[0].toTensor();
  const auto dim = call.node->arguments[static_cast<std::size_t>(call.node->op->dim)].toInt();
  const at::Tensor rows = std::get<0>(self.movedim(dim, -1).sort(-1));
  const auto last = rows.size(-1) - 1;
  return rows.narrow(-1, 1, last).ne(rows.narrow(-1, 0, last)).sum(-1).max().item<std::int64_t>();
}

void add_ties(const Call& call, Size& size) {
  if (size.substituted || size.results.empty()) return;
  const Unseen unseen;
  const Stack arguments = stack_of(*call.node, {});
  for (const Unspecified& one : unspecified_in(*call.node, arguments, size.results))
    size.of_results.add({call.node->op->name, one.what, one.unsure});
}

bool has_all(const Call& call) { return !call.lost && is_computable(call); }

// A sparse tensor's indices, which alone decide what is left once those that are the same are
// added up.
const Input* indices_of(const Call& call) {
  const auto& inputs = call.node->inputs;
  return inputs.empty() || !inputs[0].value ? nullptr : inputs.data();
}

bool rests_on_unknown(const Call& call) {
  if (call.size_of != SizeOf::coalesce)
    return !has_all(call) || call.largest_absent_bytes > 0 || call.node->substituted;
  const Input* indices = indices_of(call);
  return !indices || doubtful(*indices->value);
}

void count_indices(const Call& call, Size& size) {
  const Input* indices = indices_of(call);
  if (!indices) {
    size.count = most_rows(call);
    return;
  }
  const Unseen unseen;
  compute(*indices->value);
  size.substituted = doubtful(*indices->value);
  size.choices = indices->value->choices;
  size.choices.add(indices->value->rounded.by);
  size.indices = std::get<0>(at::unique_dim(tensor_in(indices->value->data, indices->view), 1));
  size.count = size.indices.size(1);
}

void put_computed(const Size& size, const at::Tensor& tensor, const at::Tensor& computed) {
  const Unseen unseen;
  at::Tensor bytes = at::zeros({static_cast<std::int64_t>(bytes_of(tensor))}, at::kByte);
  tensor_in(bytes, view_of(tensor)).copy_(computed);
  auto value = known(std::move(bytes));
  value->substituted = size.substituted;
  value->choices = size.choices;
  value->choices.add(size.of_results);
  Storages::all().put(base_of(tensor), value);
}

}  // namespace

std::optional<std::int64_t> assumed_rows(std::int64_t least, std::int64_t most) {
  constexpr std::uint64_t kDownGuess = 3, kUpGuess = 4;
  static const std::string_view words = [] {
    const char* text = std::getenv(emulator::kAssumeVariable);
    return text ? std::string_view(text) : std::string_view();
  }();
  if (words == "nonzero=all") return most;
  if (words == "nonzero=none" || guess() == kLowGuess) return least;
  if (guess() == kHighGuess) return most;
  if (guess() == kDownGuess) return next_in_order(Order::down, least, most);
  return guess() == kUpGuess ? std::optional(next_in_order(Order::up, least, most)) : std::nullopt;
}

Size find_size(Call& call) {
  Size size;
  size.substituted = rests_on_unknown(call);
  if (size.substituted && call.size_of != SizeOf::verdict) {
    if (const auto assumed = assumed_rows(fewest_rows(call), most_rows(call))) {
      size.count = *assumed;
      return size;
    }
  }
  if (call.size_of == SizeOf::coalesce) {
    count_indices(call, size);
    return size;
  }
  size.finds_first = call.size_of == SizeOf::mode;
  if (!has_all(call)) {
    size.count = size.finds_first ? most_rows(call) : fewest_rows(call);
    return size;
  }
  fill_absent(call);
  size.purpose = purpose_of(*call.node);
  if (!peakbench::values::call(*call.node, size.results)) {
    size.results.clear();
    size.substituted = true;
  }
  // Whether what had to be computed first is known, is known only now.
  size.substituted |= std::ranges::any_of(call.node->inputs, is_unsure_input);
  size.count = size.finds_first ? differing_neighbours(call) : count_of(call, size.results);
  size.choices = choices_of(*call.node);
  if (size.finds_first) add_ties(call, size);
  size.choices.add(rounded_like_inputs(*call.node).by);
  return size;
}

const Size* size_asked_for() { return told; }
void tell_size(const Size* size) { told = size; }

void put_indices(const Size& size, const std::vector<c10::IValue>& results) {
  if (results.empty() || !results[0].isTensor() || !size.indices.defined()) return;
  const auto parts = parts_of(results[0].toTensor());
  if (parts.empty() || !has_storage(parts[0]) || parts[0].sizes() != size.indices.sizes()) return;
  if (bytes_of(parts[0]) <= kLargest) put_computed(size, parts[0], size.indices);
}

void put_results(const Call& call, const Size& size, const std::vector<c10::IValue>& results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].isTensor() || !has_storage(results[i].toTensor())) continue;
    const at::Tensor& tensor = results[i].toTensor();
    const auto largest = size.substituted ? kLargest : largest_of(tensor.scalar_type());
    if (!tensor.is_cuda() || bytes_of(tensor) > largest) continue;
    const at::Tensor computed = i < size.results.size() && size.results[i].isTensor()
                                    ? size.results[i].toTensor()
                                    : at::Tensor();
    if (!computed.defined() || computed.sizes() != tensor.sizes()) {
      put_substitute(*call.node->op, tensor, 1);
      continue;
    }
    put_computed(size, tensor, computed);
  }
}

}  // namespace peakbench::values
