#include "values/bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "values/arithmetic.h"
#include "values/card_arithmetic.h"
#include "values/gather.h"
#include "values/operators.h"

namespace peakbench::values {
namespace {

constexpr const char* kRounding = "how a card rounds";
// CUDA C++ Programming Guide, "Mathematical Functions": no function here has more units in the last
// place; the CPU's have up to two.
constexpr double kUnits = 16;
constexpr std::size_t kMostMoving = 3;  // inputs of which all combinations are looked at

constexpr std::array<std::string_view, 8> kIndexing = {"index", "_index",    "scatter", "gather",
                                                       "take",  "embedding", "put",     "bincount"};
constexpr std::array<std::string_view, 6> kOrdering = {
    "aten::sort", "aten::topk", "aten::max", "aten::min", "aten::argmax", "aten::argmin"};

bool holds_numbers(at::ScalarType dtype) {
  return c10::isFloatingType(dtype) || c10::isComplexType(dtype);
}

struct Moving {  // an input, or what a target held before, that is not the same on every card
  std::size_t place;
  bool is_before;
  const Value* value;
  at::ScalarType dtype;
};

class Bounds {
 public:
  Bounds(const Node& node, Evaluation& got)
      : node_(node),
        got_(got),
        what_(arithmetic_of(node.op->plain_name)),
        found_(node.outputs.size()) {
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      add_moving(i, false, node.inputs[i].value.get(), node.inputs[i].view.dtype);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      add_moving(i, true, node.outputs[i].before.get(), node.outputs[i].view.dtype);
    look_at_call();
  }

  std::vector<Rounded> found() {
    moving_.empty() ? round_here() : pass_on();
    for (std::size_t i = 0; i < found_.size(); ++i)
      if (found_[i].is_bounded() && at::equal(found_[i].low, got_.bytes[i]) &&
          at::equal(found_[i].high, got_.bytes[i]))
        found_[i] = {};
    return std::move(found_);
  }

  std::vector<Rounded> nothing_known() {
    for (std::size_t i = 0; i < found_.size(); ++i) leave_open(i);
    return std::move(found_);
  }

 private:
  void add_moving(std::size_t place, bool is_before, const Value* value, at::ScalarType dtype) {
    if (!value || !value->rounded.any()) return;
    if (by_.empty()) by_ = value->rounded.by;
    moving_.push_back({place, is_before, value, dtype});
  }

  // What its arguments say of how it rounds.
  void look_at_call() {
    const auto number = [&](std::string_view argument) {
      const auto* value = argument_of(*node_.op, got_.arguments, argument);
      return value && value->isScalar() ? value->toScalar().toDouble() : 1.0;
    };
    const auto* accumulates = argument_of(*node_.op, got_.arguments, "accumulate");
    if (what_.rounds == Rounds::own_sums && accumulates && accumulates->isBool() &&
        !accumulates->toBool())
      what_ = {what_.name, Rounds::alike, Follows::rising};
    const bool scales = number("alpha") != 1 && (adds() || number("alpha") != -1);
    const bool to_decimals = argument_of(*node_.op, got_.arguments, "decimals") != nullptr;
    const bool is_half_line =
        name_ == "aten::linspace" && c10::isReducedFloatingType(output(0).scalar_type());
    // x * x on both.
    if (name_ == "aten::pow" && number("exponent") == 2) what_.rounds = Rounds::alike;
    if (scales || number("beta") != 1 || to_decimals || is_half_line || mixes_halves() ||
        has_complex())
      what_ = {what_.name, Rounds::otherwise, Follows::nobody_knows};
  }

  // Whether the number of a half is rounded to one before it is used is the kernel's own affair.
  bool mixes_halves() const {
    const bool computes = name_ == "aten::add" || name_ == "aten::sub" || name_ == "aten::rsub" ||
                          name_ == "aten::mul";
    if (!computes || !c10::isReducedFloatingType(output(0).scalar_type())) return false;
    return std::ranges::any_of(node_.inputs, [](const Input& input) {
      return input.constant.defined() && input.constant.dim() == 0;
    });
  }

  bool has_complex() const {
    return what_.follows != Follows::rising &&
           std::ranges::any_of(
               node_.outputs, [](const Output& one) { return c10::isComplexType(one.view.dtype); });
  }

  at::Tensor output(std::size_t i) const { return tensor_in(got_.bytes[i], node_.outputs[i].view); }
  bool is_number(std::size_t i) const { return holds_numbers(node_.outputs[i].view.dtype); }
  Choices by_this() const {
    Choices by = by_;
    if (by.empty()) by.add({node_.op->name, kRounding});
    return by;
  }
  void leave_open(std::size_t i) {
    if (!is_finite_check(i)) found_[first_of(i)] = {by_this(), {}, {}};
  }
  // What is finite is so however it was rounded.
  bool is_finite_check(std::size_t i) const {
    if (node_.op->purpose == Purpose::finite_check) return true;
    return std::ranges::any_of(node_.inputs, [&](const Input& input) {
      return input.target == static_cast<int>(i) && input.argument == node_.op->kept_target;
    });
  }
  // Of outputs that lie in one storage, the first has its value.
  std::size_t first_of(std::size_t i) const {
    const int shared = node_.outputs[i].shared;
    return shared >= 0 ? static_cast<std::size_t>(shared) : i;
  }
  bool shares(std::size_t i) const {
    return node_.outputs[i].shared >= 0 ||
           std::ranges::any_of(
               node_.outputs, [&](const Output& one) { return one.shared == static_cast<int>(i); });
  }

  void set(std::size_t i, const Choices& by, const at::Tensor& low, const at::Tensor& high) {
    if (shares(i)) return leave_open(i);
    const Output& one = node_.outputs[i];
    const auto around = [&](Side side) {
      return (one.before ? bytes_on(*one.before, side) : got_.bytes[i]).clone();
    };
    Rounded rounded = {by, around(Side::low), around(Side::high)};
    tensor_in(rounded.low, one.view).copy_(at::minimum(low, output(i)));
    tensor_in(rounded.high, one.view).copy_(at::maximum(high, output(i)));
    found_[i] = std::move(rounded);
  }

  // Of inputs that every card has alike.
  void round_here() {
    const bool any_number = std::ranges::any_of(
        node_.outputs, [](const Output& one) { return holds_numbers(one.view.dtype); });
    if (!any_number || what_.rounds == Rounds::alike) return;
    if (adds()) return add_up();
    const auto wide = evaluate_widely(node_, middle);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (!wide.empty() && is_same(wide[i], output(i))) continue;
      if (!wide.empty() && what_.rounds == Rounds::shares) {
        set_share(i, wide[i]);
      } else if (wide.empty() || what_.rounds != Rounds::a_little) {
        leave_open(i);
      } else {
        set_nearly(i, wide[i], wide[i]);
      }
    }
  }

  void set_nearly(std::size_t i, const at::Tensor& low, const at::Tensor& high) {
    const auto dtype = node_.outputs[i].view.dtype;
    const double unit = std::ldexp(kUnits, -(dtype == at::kDouble ? 52 : 23));
    set(i, by_this(), (low - low.abs() * unit).to(dtype), (high + high.abs() * unit).to(dtype));
  }

  bool adds() const { return what_.follows == Follows::added_up; }

  static at::Tensor middle(const at::Tensor& low, const at::Tensor& high) {
    return (low + high) / 2;
  }
  static at::Tensor middle_size(const at::Tensor& low, const at::Tensor& high) {
    return middle(low, high).abs();
  }
  static at::Tensor size(const at::Tensor& low, const at::Tensor& high) {
    return at::maximum(low.abs(), high.abs());
  }

  at::Tensor first(Side side) const {
    return stack_of(node_, got_.bytes, Sides::all(node_, side))[0].toTensor();
  }

  // Sums in double precision; of a mean, too.
  std::vector<at::Tensor> sums(Make make) const {
    if (name_ != "aten::mean") return evaluate_widely(node_, make);
    const at::Tensor numbers =
        make(first(Side::low).to(at::kDouble), first(Side::high).to(at::kDouble));
    const auto* dim = argument_of(*node_.op, got_.arguments, "dim");
    if (!dim || dim->isNone()) return {numbers.sum().view_as(output(0))};
    const bool keeps = argument_of(*node_.op, got_.arguments, "keepdim")->toBool();
    return {numbers.sum(dim->toIntVector(), keeps).view_as(output(0))};
  }

  void set_share(std::size_t i, const at::Tensor& wide) {
    if (first(Side::data).dim() == 0 || wide.numel() == 0) return leave_open(i);
    const auto dim = argument_of(*node_.op, got_.arguments, "dim")->toInt();
    const auto [low, high] =
        shares_between(wide, {first(Side::low), first(Side::high)}, dim,
                       name_ == "aten::_log_softmax", node_.outputs[i].view.dtype);
    set(i, by_this(), low, high);
  }

  at::Tensor rounded_sums(std::size_t i, const at::Tensor& sums) const {
    const auto dtype = node_.outputs[i].view.dtype;
    return name_ == "aten::mean" ? mean_of_sums(sums, elements(), dtype) : sums.to(dtype);
  }

  std::int64_t elements() const {
    std::int64_t most = 1;
    for (const c10::IValue& argument : got_.arguments)
      for_each_tensor(argument, [&](const at::Tensor& tensor) {
        if (tensor.defined()) most = std::max(most, tensor.numel());
      });
    return most;
  }

  // Which arguments are the factors of products; none: numbers are added as they are.
  std::pair<std::size_t, std::size_t> factors() const {
    if (name_ == "aten::addmm" || name_ == "aten::addmv" || name_ == "aten::baddbmm") return {1, 2};
    const bool multiplies =
        name_ == "aten::mm" || name_ == "aten::bmm" || name_ == "aten::mv" || name_ == "aten::dot";
    return {0, multiplies ? 1 : 0};
  }

  // How many numbers come together in a sum, or more.
  std::int64_t terms() const {
    const auto [left, right] = factors();
    return right ? got_.arguments[left].toTensor().size(-1) + 2 : elements();
  }

  // Whether no partial sum has more bits than there are, in whatever order.
  bool adds_exactly(double largest_sum, int bits) const {
    const auto [left, right] = factors();
    double least = std::numeric_limits<double>::infinity(), product = 1;
    // The arguments as they were: a target is changed by now.
    std::vector<at::Tensor> before;
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      const auto& one = node_.outputs[i].before;
      before.push_back(one ? one->data.clone() : at::zeros_like(got_.bytes[i]));
    }
    const Stack arguments = stack_of(node_, before);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      for_each_tensor(arguments[i], [&](const at::Tensor& tensor) {
        if (!tensor.defined() || !c10::isFloatingType(tensor.scalar_type())) return;
        const double one = quantum_of(tensor);
        right && (i == left || i == right) ? void(product *= one)
                                           : void(least = std::min(least, one));
      });
    if (right) least = std::min(least, product);
    return largest_sum == 0 || largest_sum <= std::ldexp(least, bits);
  }

  // Of a sum of products, the difference between the greatest sizes and those in the middle is how
  // far the sum lies from its middle at most.
  void add_up() {
    const auto value = sums(middle), inner = sums(middle_size), outer = sums(size);
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (!is_number(i)) continue;
      if (value.empty() || inner.empty() || outer.empty() || shares(i)) {
        leave_open(i);
      } else {
        add_up(i, value[i], outer[i] - inner[i], outer[i]);
      }
    }
  }

  void add_up(std::size_t i, const at::Tensor& value, const at::Tensor& width,
              const at::Tensor& sizes) {
    const double largest = sizes.numel() == 0 ? 0 : sizes.max().item<double>();
    if (!std::isfinite(largest)) {
      if (!moving_.empty() || !is_same(rounded_sums(i, value), output(i))) leave_open(i);
      return;
    }
    const auto dtype = node_.outputs[i].view.dtype;
    const bool in_own_type = what_.rounds == Rounds::own_sums || dtype == at::kDouble;
    const int bits = in_own_type ? bits_of(dtype) : bits_of(at::kFloat);
    if (moving_.empty() && adds_exactly(largest, bits))
      return void(output(i).copy_(rounded_sums(i, value)));
    const double unit = std::log1p(std::ldexp(1.0, -bits));
    const at::Tensor error =
        width + sizes * (std::expm1(static_cast<double>(terms()) * unit) + std::ldexp(1.0, -50));
    set(i, by_this(), rounded_sums(i, value - error), rounded_sums(i, value + error));
  }

  // Of inputs that lie between two numbers.
  void pass_on() {
    const bool bounded = std::ranges::all_of(
        moving_, [](const Moving& one) { return one.value->rounded.is_bounded(); });
    const bool orders = std::ranges::find(kOrdering, name_) != kOrdering.end();
    const bool passes = bounded && can_follow();
    std::vector<Evaluation> others;
    const bool counts = adds() && std::ranges::none_of(moving_, [](const Moving& one) {
                          return holds_numbers(one.dtype);
                        });
    if (passes && (what_.follows == Follows::rising || counts))
      others = evaluated({Sides::all(node_, Side::low), Sides::all(node_, Side::high)});
    if (passes && (what_.follows == Follows::either || what_.follows == Follows::one_side))
      others = evaluated(combinations());
    if (bounded && what_.rounds == Rounds::shares) {
      const auto wide = evaluate_widely(node_, middle);
      return wide.empty() ? leave_open(0) : set_share(0, wide[0]);
    }
    const bool sums = passes && adds() && !counts;
    if (sums) add_up();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (sums && is_number(i)) continue;
      if (orders && bounded && !is_number(i) && node_.outputs[i].view.dtype == at::kLong) {
        if (!keeps_order()) leave_open(i);
      } else if (passes && what_.follows == Follows::equality) {
        set_equality(i);
      } else if (!others.empty()) {
        set_between(i, others);
      } else {
        leave_open(i);
      }
    }
  }

  // What holds of numbers between two does not of indices, and not of truths that are made of them.
  bool can_follow() const {
    if (what_.follows == Follows::nobody_knows) return false;
    std::string_view name = name_;
    name.remove_prefix(std::min(name.size(), std::string_view("aten::").size()));
    const bool indexes =
        std::ranges::any_of(kIndexing, [&](std::string_view one) { return name.starts_with(one); });
    return std::ranges::all_of(moving_, [&](const Moving& one) {
      const bool number = c10::isFloatingType(one.dtype);
      if (indexes && !number) return false;
      const bool decides = number && what_.follows == Follows::rising &&
                           std::ranges::any_of(node_.outputs, [](const Output& output) {
                             return output.view.dtype == at::kBool;
                           });
      const bool truths = name.starts_with("bitwise") && one.dtype != at::kBool;
      return !decides && !truths && !is_around_zero(one);
    });
  }

  // Of a quotient, the divisor.
  bool is_around_zero(const Moving& one) const {
    if (what_.follows != Follows::one_side) return false;
    const bool divides = name_ == "aten::div";
    if (divides && (one.is_before || node_.inputs[one.place].argument != 1)) return false;
    const View& view = one.is_before ? node_.outputs[one.place].view : node_.inputs[one.place].view;
    const at::Tensor low = tensor_in(one.value->rounded.low, view),
                     high = tensor_in(one.value->rounded.high, view);
    return low.le(0).logical_and(high.ge(0)).any().item<bool>();
  }

  std::vector<Sides> combinations() const {
    std::vector<Sides> all;
    if (moving_.size() > kMostMoving) return all;
    for (unsigned bits = 0; bits < 1U << moving_.size(); ++bits) {
      Sides sides = Sides::all(node_, Side::data);
      for (std::size_t i = 0; i < moving_.size(); ++i)
        (moving_[i].is_before ? sides.before : sides.inputs)[moving_[i].place] =
            (bits >> i & 1U) ? Side::high : Side::low;
      all.push_back(std::move(sides));
    }
    return all;
  }

  std::vector<Evaluation> evaluated(const std::vector<Sides>& all) const {
    std::vector<Evaluation> others;
    for (const Sides& sides : all) {
      others.push_back(evaluate(node_, sides));
      if (!others.back().done) return {};
    }
    return others;
  }

  void set_between(std::size_t i, const std::vector<Evaluation>& others) {
    at::Tensor low = output(i), high = low;
    for (const Evaluation& other : others) {
      if (!other.right[i]) return leave_open(i);
      const at::Tensor one = tensor_in(other.bytes[i], node_.outputs[i].view);
      low = at::minimum(low, one);
      high = at::maximum(high, one);
    }
    if (what_.rounds == Rounds::a_little)
      return set_nearly(i, low.to(at::kDouble), high.to(at::kDouble));
    set(i, by_, low, high);
  }

  // The first two arguments, or the first one and zero.
  std::pair<at::Tensor, at::Tensor> compared(Side side) const {
    const Stack stack = stack_of(node_, got_.bytes, Sides::all(node_, side));
    const at::Tensor left = stack[0].toTensor();
    if (name_ == "aten::logical_not" || stack.size() < 2) return {left, at::zeros_like(left)};
    const at::Tensor right = stack[1].isTensor()
                                 ? stack[1].toTensor()
                                 : at::scalar_tensor(stack[1].toScalar(), at::kDouble);
    // A number is taken as one of the tensor's.
    return {left, right.dim() == 0 && holds_numbers(left.scalar_type())
                      ? right.to(left.scalar_type())
                      : right};
  }

  void set_equality(std::size_t i) {
    if (node_.outputs[i].result < 0) return leave_open(i);
    const auto [left_low, right_low] = compared(Side::low);
    const auto [left_high, right_high] = compared(Side::high);
    const auto [low, high] = equality_between({left_low, left_high}, {right_low, right_high});
    const bool denies = name_ == "aten::ne";
    set(i, by_, denies ? high.logical_not() : low, denies ? low.logical_not() : high);
  }

  bool keeps_order() const {
    at::Tensor data = first(Side::data), low = first(Side::low), high = first(Side::high);
    const auto* dim = argument_of(*node_.op, got_.arguments, "dim");
    if (dim && dim->isInt()) return is_order_decided(data, {low, high}, dim->toInt(), name_);
    return is_order_decided(data.flatten(), {low.flatten(), high.flatten()}, 0, name_);
  }

  const Node& node_;
  Evaluation& got_;
  Arithmetic what_;
  const std::string& name_ = node_.op->plain_name;
  std::vector<Moving> moving_;
  Choices by_;
  std::vector<Rounded> found_;
};

}  // namespace

std::vector<Rounded> rounded_in(const Node& node, Evaluation& got) {
  if (node.op->takes_shape) return std::vector<Rounded>(node.outputs.size());
  try {
    return Bounds(node, got).found();
  } catch (const c10::Error&) {  // a kind of number that the CPU compares none of
    return Bounds(node, got).nothing_known();
  }
}

Rounded rounded_like_inputs(const Node& node) {
  Rounded rounded;
  const auto look = [&](const ValuePtr& value) {
    if (value && rounded.by.empty()) rounded.by = value->rounded.by;
  };
  for (const Input& input : node.inputs) look(input.value);
  for (const Output& output : node.outputs) look(output.before);
  return rounded;
}

}  // namespace peakbench::values
