#include "values/unspecified.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>

#include "core/values_hook.h"
#include "values/gather.h"
#include "values/operators.h"

namespace peakbench::values {
namespace {

using Found = std::vector<Unspecified>;

constexpr const char* kVectorSigns = "the sign of vectors";
constexpr const char* kEigenOrder = "the order of eigenvalues";
constexpr const char* kPivots = "the choice of pivots";

struct Factorisation {
  std::string_view name;
  int result;
  const char* what;
};
// torch.linalg: "the eigenvectors are not unique", "the QR decomposition is only unique up to the
// sign", "the LU decomposition with partial pivoting is not unique", and so on.
constexpr auto kFactorisations = std::to_array<Factorisation>({
    {"aten::_linalg_eigh", 1, kVectorSigns},
    {"aten::_linalg_svd", 0, kVectorSigns},
    {"aten::_linalg_svd", 2, kVectorSigns},
    {"aten::linalg_eig", -1, kEigenOrder},
    {"aten::linalg_eigvals", -1, kEigenOrder},
    {"aten::_linalg_eigvals", -1, kEigenOrder},
    {"aten::linalg_qr", -1, kVectorSigns},
    {"aten::geqrf", -1, kVectorSigns},
    {"aten::linalg_lu", -1, kPivots},
    {"aten::linalg_lu_factor_ex", 0, kPivots},
    {"aten::linalg_lu_factor_ex", 1, kPivots},
});

// Factorisations that are not unique.
void look_for_factors(const Node& node, Found& found) {
  for (const Factorisation& one : kFactorisations)
    if (one.name == node.op->plain_name) found.push_back({one.result, one.what});
}

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
  if (is_set(argument_of(*node.op, arguments, "stable"))) return;
  const auto dim = argument_of(*node.op, arguments, "dim")->toInt();
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
  const auto k = argument_of(*node.op, arguments, "k")->toInt();
  const auto dim = argument_of(*node.op, arguments, "dim")->toInt();
  const bool largest = is_set(argument_of(*node.op, arguments, "largest"));
  if (values.dim() == 0 || k < 1) return;
  const bool sorted = is_set(argument_of(*node.op, arguments, "sorted"));
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

void look_at_one(const Node& node, const Stack& arguments, const Stack& results, Found& found) {
  const auto* dim = argument_of(*node.op, arguments, "dim");
  if (!dim || !dim->isInt() || results.size() < 2) return;
  const at::Tensor& values = arguments.at(0).toTensor();
  if (node.op->plain_name == "aten::mode" && has_several_modes(values, dim->toInt()))
    found.push_back({-1, kWhichEqual});
  const bool keepdim = is_set(argument_of(*node.op, arguments, "keepdim"));
  if (is_there_twice(values, results[0].toTensor(), dim->toInt(), keepdim))
    found.push_back({1, kWhichEqual});
}

// Those that order or take equal values.
void look_for_ties(const Node& node, const Stack& arguments, const Stack& results, Found& found) {
  const std::string& name = node.op->plain_name;
  if (name == "aten::sort" || name == "aten::argsort")
    return look_at_sort(node, arguments, results, found);
  if (name == "aten::topk") return look_at_topk(node, arguments, found);
  if (name == "aten::median" || name == "aten::nanmedian" || name == "aten::kthvalue" ||
      name == "aten::mode")
    look_at_one(node, arguments, results, found);
}

constexpr const char* kWhichStays = "which value stays";

// A value that was put somewhere and is not there afterwards gave way to another: a card may keep
// either.
bool differ(const at::Tensor& there, const at::Tensor& put) {
  return !same_values(there, put).all().item<bool>();
}

at::Tensor tensor_named(const Node& node, const Stack& arguments, std::string_view name) {
  const auto* value = argument_of(*node.op, arguments, name);
  return value && value->isTensor() ? value->toTensor() : at::Tensor();
}

// scatter(self, dim, index, src); the overloads with a number or a reduction leave nothing open.
bool scatters_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const at::Tensor index = tensor_named(node, arguments, "index");
  at::Tensor src = tensor_named(node, arguments, "src");
  if (!src.defined() || argument_of(*node.op, arguments, "reduce") || index.numel() == 0)
    return false;
  for (std::int64_t i = 0; i < index.dim() && i < src.dim(); ++i)
    src = src.narrow(i, 0, index.size(i));
  return differ(result.gather(argument_of(*node.op, arguments, "dim")->toInt(), index), src);
}

// index_copy(self, dim, index, source)
bool copies_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const at::Tensor index = tensor_named(node, arguments, "index");
  if (index.numel() < 2 || result.dim() == 0) return false;
  const auto dim = argument_of(*node.op, arguments, "dim")->toInt();
  return differ(result.index_select(dim, index.reshape(-1)),
                tensor_named(node, arguments, "source"));
}

// index_put(self, indices, values, accumulate)
bool puts_differently(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const auto* indices = argument_of(*node.op, arguments, "indices");
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

bool is_open(const Node& node, const Stack& arguments, const at::Tensor& result) {
  const std::string& name = node.op->plain_name;
  if (name == "aten::scatter") return scatters_differently(node, arguments, result);
  if (name == "aten::index_copy") return copies_differently(node, arguments, result);
  if (name == "aten::max_unpool2d") return unpools_differently(arguments, result, 2);
  if (name == "aten::max_unpool3d") return unpools_differently(arguments, result, 3);
  if (is_set(argument_of(*node.op, arguments, "accumulate"))) return false;
  if (name == "aten::index_put" || name == "aten::_index_put_impl")
    return puts_differently(node, arguments, result);
  return name == "aten::put" && takes_differently(node, arguments, result);
}

// Those that put several values in one place.
void look_for_duplicates(const Node& node, const Stack& arguments, const Stack& results,
                         Found& found) {
  if (results.empty() || !results[0].isTensor()) return;
  if (is_open(node, arguments, results[0].toTensor())) found.push_back({-1, kWhichStays});
}

constexpr const char* kTf32 = "what TF32 rounds off";

constexpr std::array<std::string_view, 6> kProductNames = {
    "aten::mm",      "aten::bmm",    "aten::addmm",
    "aten::baddbmm", "aten::addbmm", "aten::_addmm_activation"};
// What takes cuDNN, or cuBLAS where that is turned off.
constexpr std::array<std::string_view, 4> kConvolutions = {
    "aten::cudnn_convolution", "aten::convolution", "aten::slow_conv", "aten::_slow_conv"};
constexpr std::string_view kRecurrentNames = "aten::_cudnn_rnn";

// Where the program's settings contradict each other, PyTorch throws.
template <typename Ask>
bool allows(Ask ask) {
  try {
    return ask();
  } catch (const std::exception&) {
    return true;
  }
}

// TF32 keeps the upper 10 of a number's 23 bits of mantissa.
bool has_more_bits(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.scalar_type() != at::kFloat || tensor.numel() == 0) return false;
  return tensor.contiguous().view(at::kInt).bitwise_and(0x1FFF).ne(0).any().item<bool>();
}

// Products that may be computed in TF32.
void look_for_rounding(const Node& node, const Stack& arguments, Found& found) {
  if (!node.tf32) return;
  const std::string& name = node.op->plain_name;
  // What is added to a product is not rounded.
  const bool adds = name.starts_with("aten::addmm") || name.starts_with("aten::baddbmm") ||
                    name.starts_with("aten::addbmm") || name.starts_with("aten::_addmm");
  bool rounds = false;
  for (std::size_t i = adds ? 1 : 0; i < arguments.size(); ++i)
    for_each_tensor(arguments[i],
                    [&](const at::Tensor& tensor) { rounds |= has_more_bits(tensor); });
  if (rounds) found.push_back({-1, kTf32});
}

}  // namespace

std::vector<Unspecified> unspecified_in(const Node& node, const Stack& arguments,
                                        const Stack& results) {
  Found found;
  try {
    look_for_factors(node, found);
    look_for_ties(node, arguments, results, found);
    look_for_duplicates(node, arguments, results, found);
    look_for_rounding(node, arguments, found);
  } catch (const std::exception&) {  // a kind of number that the CPU compares none of
    found.push_back({-1, "which result it gives"});
  }
  return found;
}

bool may_round_to_tf32(const Operator& op) {
  if (!peakbench_emulator_has_tf32()) return false;
  const auto& context = at::globalContext();
  const auto cublas = [&] { return context.allowTF32CuBLAS(); };
  const auto cudnn = [&] { return context.allowTF32CuDNN(); };
  if (is_one_of(kProductNames, op.name)) return allows(cublas);
  if (std::ranges::any_of(kConvolutions, [&](auto one) { return op.name.starts_with(one); }))
    return (context.userEnabledCuDNN() && allows(cudnn)) || allows(cublas);
  return op.name.starts_with(kRecurrentNames) && allows(cudnn);
}

}  // namespace peakbench::values
