#include "values/card_arithmetic.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "values/operators.h"
#include "values/unspecified.h"

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
  const auto* mode = argument_of(*node.op, stack, "rounding_mode");
  const bool rounds = mode && mode->isString();
  const at::Tensor self = stack[0].toTensor();
  if (rounds && (mode->toStringRef() != "trunc" || !c10::isFloatingType(self.scalar_type())))
    return false;
  const at::Tensor divisor =
      stack[1].isTensor() ? stack[1].toTensor() : at::scalar_tensor(stack[1].toScalar());
  at::Tensor result = divided(self, divisor, rounds);
  if (!result.defined()) return false;
  const auto* out = argument_of(*node.op, stack, "out");
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
  const auto* out = argument_of(*node.op, stack, "out");
  const auto* step = argument_of(*node.op, stack, "step");
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
  const std::string& name = node.op->plain_name;
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

namespace {

bool is_signed(at::ScalarType dtype) {
  return dtype == at::kChar || dtype == at::kShort || dtype == at::kInt || dtype == at::kLong;
}

// Fractions are cut off, so that everything between -1 and 0 becomes 0, and 127.9 becomes 127.
bool fit(const at::Tensor& numbers, at::ScalarType dtype) {
  const at::Tensor real = at::isComplexType(numbers.scalar_type()) ? at::real(numbers) : numbers;
  const at::Tensor wide = real.to(at::kDouble);
  // PyTorch makes bytes by way of int64: c10::static_cast_with_inter_type.
  const bool by_long = dtype == at::kByte;
  const bool has_sign = by_long || is_signed(dtype);
  const int bits = by_long ? 64 : static_cast<int>(8 * c10::elementSize(dtype));
  const double above = std::ldexp(1.0, has_sign ? bits - 1 : bits);
  const double lowest = has_sign ? -above : 0;
  // In int64's range doubles are integers: there is none between its lowest one and one less.
  const at::Tensor low = bits == 64 && has_sign ? wide.ge(lowest) : wide.gt(lowest - 1);
  return low.logical_and(wide.lt(above)).all().item<bool>();
}

bool any_beyond(const at::Tensor& numbers, at::ScalarType dtype) {
  const auto from = numbers.scalar_type();
  return numbers.numel() != 0 && c10::isIntegralType(dtype, /*includeBool=*/false) &&
         (at::isFloatingType(from) || at::isComplexType(from)) && !fit(numbers, dtype);
}

// Of an argument, the tensors that lie on the card.
bool is_of_card(const Node& node, int argument, int index) {
  for (const Input& input : node.inputs)
    if (input.argument == argument && input.index == index) return input.value != nullptr;
  return false;
}

bool copies_beyond_range(const Node& node, const Stack& arguments) {
  const at::Tensor &to = arguments.at(0).toTensor(), &from = arguments.at(1).toTensor();
  return is_of_card(node, 1, -1) && any_beyond(from, to.scalar_type());
}

bool copies_lists_beyond_range(const Node& node, const Stack& arguments) {
  const auto to = arguments.at(0).toTensorVector(), from = arguments.at(1).toTensorVector();
  for (std::size_t i = 0; i < to.size() && i < from.size(); ++i)
    if (is_of_card(node, 1, static_cast<int>(i)) && any_beyond(from[i], to[i].scalar_type()))
      return true;
  return false;
}

}  // namespace

bool converts_beyond_range(const Node& node, const Stack& arguments) {
  if (arguments.empty()) return false;
  if (node.op->is_copy) return copies_beyond_range(node, arguments);
  if (node.op->name == "aten::_foreach_copy_") return copies_lists_beyond_range(node, arguments);
  // Sums and the like convert before they add.
  if (!arguments[0].isTensor() || !is_of_card(node, 0, -1)) return false;
  const auto* dtype = argument_of(*node.op, arguments, "dtype");
  return !node.op->takes_shape && dtype && dtype->isInt() &&
         any_beyond(arguments[0].toTensor(), static_cast<at::ScalarType>(dtype->toInt()));
}

}  // namespace peakbench::values
