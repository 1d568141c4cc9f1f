#include "values/rounding.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>

#include "core/values_hook.h"
#include "values/gather.h"
#include "values/operators.h"
#include "values/unspecified.h"

namespace peakbench::values {
namespace {

constexpr const char* kTf32 = "what TF32 rounds off";

constexpr std::array<std::string_view, 6> kProductNames = {
    "aten::mm",      "aten::bmm",    "aten::addmm",
    "aten::baddbmm", "aten::addbmm", "aten::_addmm_activation"};
// What takes cuDNN, or cuBLAS where that is turned off.
constexpr std::array<std::string_view, 4> kConvolutions = {
    "aten::cudnn_convolution", "aten::convolution", "aten::slow_conv", "aten::_slow_conv"};
constexpr std::string_view kRecurrentNames = "aten::_cudnn_rnn";

template <std::size_t size>
bool begins_like_one(const std::array<std::string_view, size>& names, std::string_view name) {
  return std::ranges::any_of(names, [&](std::string_view one) { return name.starts_with(one); });
}

bool is_matrix_product(std::string_view name) {
  return std::ranges::find(kProductNames, name) != kProductNames.end();
}

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

}  // namespace

bool may_round_to_tf32(const Operator& op) {
  if (!peakbench_emulator_has_tf32()) return false;
  const auto& context = at::globalContext();
  const auto cublas = [&] { return context.allowTF32CuBLAS(); };
  const auto cudnn = [&] { return context.allowTF32CuDNN(); };
  if (is_matrix_product(op.name)) return allows(cublas);
  if (begins_like_one(kConvolutions, op.name))
    return (context.userEnabledCuDNN() && allows(cudnn)) || allows(cublas);
  return op.name.starts_with(kRecurrentNames) && allows(cudnn);
}

void look_for_rounding(std::string_view name, const Node& node, const Stack& arguments,
                       Found& found) {
  if (!node.tf32) return;
  // What is added to a product is not rounded.
  const bool adds = name.starts_with("aten::addmm") || name.starts_with("aten::baddbmm") ||
                    name.starts_with("aten::addbmm") || name.starts_with("aten::_addmm");
  bool rounds = false;
  for (std::size_t i = adds ? 1 : 0; i < arguments.size(); ++i)
    for_each_tensor(arguments[i],
                    [&](const at::Tensor& tensor) { rounds |= has_more_bits(tensor); });
  if (rounds) found.push_back({-1, kTf32});
}

}  // namespace peakbench::values
