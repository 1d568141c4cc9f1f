#include "values/card_arithmetic.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "values/operators.h"

namespace peakbench::values {
namespace {

// As OpMathType.h has it.
at::ScalarType computed_in(at::ScalarType dtype) {
  return c10::isReducedFloatingType(dtype) ? at::kFloat : dtype;
}

// A tensor of the host without dimensions, or a Python number.
bool is_number_of_host(const Node& node, const Stack& stack) {
  const auto divisor = std::ranges::find(node.inputs, 1, &Input::argument);
  if (divisor == node.inputs.end()) return stack[1].isScalar();
  return divisor->index < 0 && divisor->constant.defined() && divisor->constant.dim() == 0;
}

at::Tensor divided(const at::Tensor& self, const at::Tensor& divisor, bool truncates) {
  auto common = at::result_type(self, divisor);
  if (c10::isIntegralType(common, true)) common = c10::get_default_dtype_as_scalartype();
  if (!c10::isFloatingType(common)) return {};
  const auto wide = computed_in(common);
  const at::Tensor inverse = at::ones({}, wide).div(divisor.to(wide));
  const at::Tensor quotient = self.to(common).to(wide).mul(inverse);
  return (truncates ? quotient.trunc() : quotient).to(common);
}

// div_true_kernel_cuda, div_trunc_kernel_cuda: "compute a * reciprocal(b). Note that this may lose
// one bit of precision compared to computing the division." False for another division.
bool divide(const Node& node, Stack& stack) {
  if (!stack[0].isTensor() || !is_number_of_host(node, stack)) return false;
  const auto* mode = argument_of(node, stack, "rounding_mode");
  const bool rounds = mode && mode->isString();
  const at::Tensor self = stack[0].toTensor();
  if (rounds && (mode->toStringRef() != "trunc" || !c10::isFloatingType(self.scalar_type())))
    return false;
  const at::Tensor divisor =
      stack[1].isTensor() ? stack[1].toTensor() : at::scalar_tensor(stack[1].toScalar());
  at::Tensor result = divided(self, divisor, rounds);
  if (!result.defined()) return false;
  const auto* out = argument_of(node, stack, "out");
  if (node.op->mutates) result = (out ? out->toTensor() : self).copy_(result);
  stack.assign(1, result);
  return true;
}

template <typename Number>
at::Tensor products_added(Number start, Number step, std::int64_t begin, std::int64_t end) {
  at::Tensor result = at::empty({end - begin}, c10::CppTypeToScalarType<Number>::value);
  for (std::int64_t i = begin; i < end; ++i)
    result.data_ptr<Number>()[i - begin] = std::fma(step, static_cast<Number>(i), start);
  return result;
}

template <typename Number>
at::Tensor range_of(const c10::Scalar& start, const c10::Scalar& step, std::int64_t elements) {
  return products_added(start.to<Number>(), step.to<Number>(), 0, elements);
}

// The first half from the start on, the second from the end back.
template <typename Number>
at::Tensor line_of(const c10::Scalar& start, const c10::Scalar& end, std::int64_t elements) {
  const auto first = start.to<Number>(), last = end.to<Number>();
  const Number step = (last - first) / static_cast<Number>(elements - 1);
  const auto half = elements / 2;
  return at::cat({products_added<Number>(first, step, 0, half),
                  products_added<Number>(last, -step, 0, elements - half).flip(0)});
}

// arange and linspace into `out`, of numbers whose products are added in one step. Those of a
// linspace of integers are in float, and cut off.
bool step_evenly(const Node& node, Stack& stack, bool is_line) {
  const auto* out = argument_of(node, stack, "out");
  const auto* step = argument_of(node, stack, "step");
  if (!out || !(is_line || step) || !stack[0].isScalar() || !stack[1].isScalar()) return false;
  const at::Tensor target = out->toTensor();
  const auto dtype = target.scalar_type();
  const bool integers = c10::isIntegralType(dtype, false);
  if (is_line ? c10::isReducedFloatingType(dtype) || target.numel() < 2 : integers) return false;
  if (!integers && !c10::isFloatingType(dtype)) return false;
  const auto number = [&](std::size_t i) {
    const auto scalar = stack[i].toScalar();
    return integers ? c10::Scalar(scalar.to<std::int64_t>()) : scalar;
  };
  const auto made = [&](auto zero) {
    using Number = decltype(zero);
    return is_line ? line_of<Number>(number(0), number(1), target.numel())
                   : range_of<Number>(number(0), step->toScalar(), target.numel());
  };
  target.copy_(dtype == at::kDouble ? made(double{}) : made(float{}));
  stack.assign(1, target);
  return true;
}

}  // namespace

bool call_as_a_card(const Node& node, Stack& stack) {
  std::string_view name = node.op->name;
  if (name.ends_with('_')) name.remove_suffix(1);
  if (name == "aten::div") return divide(node, stack);
  const bool is_line = name == "aten::linspace";
  return (is_line || name == "aten::arange") && step_evenly(node, stack, is_line);
}

// mean_kernel_impl: the sum times num_output_elements() / numel(), in the type of the sum.
at::Tensor mean_of_sums(const at::Tensor& sums, std::int64_t elements, at::ScalarType dtype) {
  const auto wide = computed_in(dtype);
  const auto number = [&](std::int64_t count) {
    return at::scalar_tensor(static_cast<double>(count)).to(wide);
  };
  const at::Tensor factor = number(sums.numel()).div(number(elements));
  return sums.to(wide).mul(factor).to(dtype);
}

}  // namespace peakbench::values
