#include <algorithm>

#include "values/operators.h"
#include "values/unspecified.h"

namespace peakbench::values {
namespace {

constexpr const char* kKeyOrder = "the order of equal keys";
constexpr const char* kUnsorted = "the order of what is taken";
constexpr const char* kWhichEqual = "which of equal values is taken";

at::Tensor same_values(const at::Tensor& left, const at::Tensor& right) {
  return left.eq(right).logical_or(left.isnan().logical_and(right.isnan()));
}

// Of values in order: whether two that follow each other are equal.
bool has_equal_neighbours(const at::Tensor& sorted, std::int64_t dim) {
  if (sorted.dim() == 0 || sorted.numel() == 0 || sorted.size(dim) < 2) return false;
  const auto last = sorted.size(dim) - 1;
  return same_values(sorted.narrow(dim, 0, last), sorted.narrow(dim, 1, last)).any().item<bool>();
}

bool is_set(const c10::IValue* value) { return value && value->isBool() && value->toBool(); }

void look_at_sort(const Node& node, const Stack& arguments, const Stack& results, Found& found) {
  if (is_set(argument_of(node, arguments, "stable"))) return;
  const auto dim = argument_of(node, arguments, "dim")->toInt();
  const at::Tensor& first = results.at(0).toTensor();
  if (results.size() > 1) {
    if (has_equal_neighbours(first, dim)) found.push_back({1, kKeyOrder});
    return;
  }
  const at::Tensor& keys = arguments.at(0).toTensor();  // argsort
  if (keys.dim() > 0 && has_equal_neighbours(at::take_along_dim(keys, first, dim), dim))
    found.push_back({-1, kKeyOrder});
}

void look_at_topk(const Node& node, const Stack& arguments, Found& found) {
  const at::Tensor& values = arguments.at(0).toTensor();
  const auto k = argument_of(node, arguments, "k")->toInt();
  const auto dim = argument_of(node, arguments, "dim")->toInt();
  const bool largest = is_set(argument_of(node, arguments, "largest"));
  if (values.dim() == 0 || k < 1) return;
  const bool sorted = is_set(argument_of(node, arguments, "sorted"));
  if (!sorted && k > 1) found.push_back({-1, kUnsorted});
  const auto taken = std::get<0>(
      at::topk(values, std::min(k + 1, values.size(dim)), dim, largest, /*sorted=*/true));
  if (has_equal_neighbours(taken, dim)) found.push_back({1, kWhichEqual});
}

// Of what is equal to the value that is found, more than one element.
bool is_there_twice(const at::Tensor& values, at::Tensor found, std::int64_t dim, bool keepdim) {
  if (values.dim() == 0) return false;
  if (!keepdim) found = found.unsqueeze(dim);
  return same_values(values, found).sum(dim).gt(1).any().item<bool>();
}

// Whether several values are there as often as the one that is there most often.
bool has_several_modes(const at::Tensor& values, std::int64_t dim) {
  if (values.dim() == 0 || values.numel() == 0) return false;
  const at::Tensor sorted = std::get<0>(values.transpose(dim, -1).sort(-1));
  const auto length = sorted.size(-1);
  const at::Tensor place = at::arange(length);
  at::Tensor begin = at::zeros(sorted.sizes(), at::kLong);
  if (length > 1) {
    const at::Tensor starts =
        same_values(sorted.narrow(-1, 0, length - 1), sorted.narrow(-1, 1, length - 1))
            .logical_not();
    begin.narrow(-1, 1, length - 1).copy_(starts * place.narrow(0, 1, length - 1));
  }
  const at::Tensor run = place - std::get<0>(begin.cummax(-1)) + 1;
  return run.eq(run.amax(-1, true)).sum(-1).gt(1).any().item<bool>();
}

void look_at_one(std::string_view name, const Node& node, const Stack& arguments,
                 const Stack& results, Found& found) {
  const auto* dim = argument_of(node, arguments, "dim");
  if (!dim || !dim->isInt() || results.size() < 2) return;
  const at::Tensor& values = arguments.at(0).toTensor();
  if (name == "aten::mode" && has_several_modes(values, dim->toInt()))
    found.push_back({-1, kWhichEqual});
  const bool keepdim = is_set(argument_of(node, arguments, "keepdim"));
  if (is_there_twice(values, results[0].toTensor(), dim->toInt(), keepdim))
    found.push_back({1, kWhichEqual});
}

}  // namespace

void look_for_ties(std::string_view name, const Node& node, const Stack& arguments,
                   const Stack& results, Found& found) {
  if (name == "aten::sort" || name == "aten::argsort")
    return look_at_sort(node, arguments, results, found);
  if (name == "aten::topk") return look_at_topk(node, arguments, found);
  if (name == "aten::median" || name == "aten::nanmedian" || name == "aten::kthvalue" ||
      name == "aten::mode")
    look_at_one(name, node, arguments, results, found);
}

}  // namespace peakbench::values
