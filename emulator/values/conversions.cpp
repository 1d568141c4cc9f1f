#include "values/conversions.h"

#include <cmath>
#include <cstdint>

#include "values/operators.h"
#include "values/unspecified.h"

namespace peakbench::values {
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
  const auto* dtype = argument_of(node, arguments, "dtype");
  return !node.op->takes_shape && dtype && dtype->isInt() &&
         any_beyond(arguments[0].toTensor(), static_cast<at::ScalarType>(dtype->toInt()));
}

}  // namespace peakbench::values
