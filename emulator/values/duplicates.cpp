#include "values/operators.h"
#include "values/unspecified.h"

namespace peakbench::values {
namespace {

constexpr const char* kWhichStays = "which value stays";

// A value that was put somewhere and is not there afterwards gave way to another: a card may keep
// either.
bool differ(const at::Tensor& there, const at::Tensor& put) {
  const at::Tensor unlike = there.ne(put);
  return unlike.logical_and(there.isnan().logical_and(put.isnan()).logical_not())
      .any()
      .item<bool>();
}

at::Tensor tensor_named(const Node& node, const Stack& arguments, std::string_view name) {
  const auto* value = argument_of(node, arguments, name);
  return value && value->isTensor() ? value->toTensor() : at::Tensor();
}

bool accumulates(const Node& node, const Stack& arguments) {
  const auto* value = argument_of(node, arguments, "accumulate");
  return value && value->isBool() && value->toBool();
}

// scatter(self, dim, index, src); the overloads with a number or a reduction leave nothing open.
bool scatters_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const at::Tensor index = tensor_named(node, arguments, "index");
  at::Tensor src = tensor_named(node, arguments, "src");
  if (!src.defined() || argument_of(node, arguments, "reduce") || index.numel() == 0) return false;
  for (std::int64_t i = 0; i < index.dim() && i < src.dim(); ++i)
    src = src.narrow(i, 0, index.size(i));
  return differ(result.gather(argument_of(node, arguments, "dim")->toInt(), index), src);
}

// index_copy(self, dim, index, source)
bool copies_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const at::Tensor index = tensor_named(node, arguments, "index");
  if (index.numel() < 2 || result.dim() == 0) return false;
  const auto dim = argument_of(node, arguments, "dim")->toInt();
  return differ(result.index_select(dim, index.reshape(-1)),
                tensor_named(node, arguments, "source"));
}

// index_put(self, indices, values, accumulate)
bool puts_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const auto* indices = argument_of(node, arguments, "indices");
  const at::Tensor values = tensor_named(node, arguments, "values");
  if (!indices || !values.defined() || values.numel() < 2) return false;
  c10::List<std::optional<at::Tensor>> list;
  for (const c10::IValue& one : indices->toListRef())
    list.push_back(one.isTensor() && one.toTensor().defined()
                       ? std::optional<at::Tensor>(one.toTensor())
                       : std::nullopt);
  const at::Tensor there = result.index(list);
  return there.numel() != 0 && differ(there, values);
}

// put(self, index, source, accumulate)
bool takes_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const at::Tensor index = tensor_named(node, arguments, "index");
  if (index.numel() < 2) return false;
  return differ(result.take(index), tensor_named(node, arguments, "source").view_as(index));
}

// max_unpool2d(self, indices, output_size) and its sister
bool unpools_differently(const Stack& arguments, const at::Tensor& result, std::int64_t dims) {
  const at::Tensor self = arguments.at(0).toTensor(), indices = arguments.at(1).toTensor();
  if (self.numel() < 2) return false;
  return differ(result.flatten(-dims).gather(-1, indices.flatten(-dims)), self.flatten(-dims));
}

bool is_open(std::string_view name, const Node& node, const Stack& arguments,
             const at::Tensor& result) {
  if (name == "aten::scatter") return scatters_differently(node, arguments, result);
  if (name == "aten::index_copy") return copies_differently(node, arguments, result);
  if (name == "aten::max_unpool2d") return unpools_differently(arguments, result, 2);
  if (name == "aten::max_unpool3d") return unpools_differently(arguments, result, 3);
  if (accumulates(node, arguments)) return false;
  if (name == "aten::index_put" || name == "aten::_index_put_impl")
    return puts_differently(node, arguments, result);
  return name == "aten::put" && takes_differently(node, arguments, result);
}

}  // namespace

void look_for_duplicates(std::string_view name, const Node& node, const Stack& arguments,
                         const Stack& results, Found& found) {
  if (results.empty() || !results[0].isTensor()) return;
  if (is_open(name, node, arguments, results[0].toTensor())) found.push_back({-1, kWhichStays});
}

}  // namespace peakbench::values
