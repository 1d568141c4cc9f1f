#include "values/uniform.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>

#include "values/storages.h"

namespace peakbench::values {
namespace {

// Most programs have none: nothing is looked up.
std::atomic<bool> there_are_any{false};

// A smaller check stays small, whatever it is cast to: it is computed.
constexpr std::size_t kSmallest = kLargest / sizeof(double);

// Of elements that are all the same, an operator makes the same as of one; or where these are
// zeros.
constexpr std::array<std::string_view, 20> kTheSameOfOne = {
    "aten::logical_or", "aten::logical_and", "aten::logical_not", "aten::logical_xor",
    "aten::bitwise_or", "aten::bitwise_and", "aten::bitwise_not", "aten::any",
    "aten::all",        "aten::max",         "aten::min",         "aten::amax",
    "aten::amin",       "aten::mean",        "aten::copy_",       "aten::clone",
    "aten::mul",        "aten::eq",          "aten::ne",          "aten::add"};
constexpr std::array<std::string_view, 2> kTheSameOfZeros = {"aten::sum", "aten::count_nonzero"};

template <std::size_t size>
bool has(const std::array<std::string_view, size>& names, std::string_view name) {
  return is_one_of(names, name) ||
         (name.ends_with('_') && is_one_of(names, name.substr(0, name.size() - 1)));  // in place
}

bool is_uniform(const ValuePtr& value) {
  return value && value->purpose == Purpose::finite_check && value->substitute.element &&
         !value->data.defined() && !value->node && !value->patch;
}

ValuePtr value_of_card(const at::Tensor& tensor) {
  if (!tensor.is_cuda() || !has_storage(tensor)) return nullptr;
  return Storages::all().find(base_of(tensor), bytes_of(tensor));
}

// A tensor of one element in place of one of many.
at::Tensor one_of(const at::Tensor& tensor, double element) {
  return at::full(std::vector<std::int64_t>(static_cast<std::size_t>(tensor.dim()), 1), element,
                  at::TensorOptions().dtype(tensor.scalar_type()));
}

class Caller {
 public:
  explicit Caller(const Operator& op) : op_(op) {}

  bool takes(c10::ArrayRef<const c10::IValue> arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (!take(static_cast<int>(i), arguments[i])) return false;
    return has(kTheSameOfOne, op_.name) || (zeros_ && has(kTheSameOfZeros, op_.name));
  }

  std::optional<Uniform> called() {
    Uniform made;
    try {
      op_.handle->callBoxed(&stack_);
      for (const c10::IValue& result : stack_) made.results.push_back(element_of(result));
      for (const at::Tensor& target : targets_) made.targets.push_back(target.item<double>());
    } catch (const std::exception&) {
      return std::nullopt;
    }
    return made;
  }

 private:
  bool take(int argument, const c10::IValue& value) {
    if (value.isDevice()) {
      stack_.emplace_back(c10::Device(c10::kCPU));
    } else if (value.isTensor() && value.toTensor().defined()) {
      return take_tensor(argument, value.toTensor());
    } else if (value.isList() && value.isTensorList()) {
      return false;
    } else {
      stack_.push_back(value);
    }
    return true;
  }

  bool take_tensor(int argument, const at::Tensor& tensor) {
    if (op_.writes_wholly(argument)) return add(argument, one_of(tensor, 0));
    if (!tensor.is_cuda()) return tensor.numel() == 1 && add(argument, tensor.clone());
    const auto value = value_of_card(tensor);
    if (!is_uniform(value)) return false;
    zeros_ &= *value->substitute.element == 0;
    return add(argument, one_of(tensor, *value->substitute.element));
  }

  bool add(int argument, at::Tensor one) {
    const auto at = static_cast<std::size_t>(argument);
    if (at < op_.writes.size() && op_.writes[at]) targets_.push_back(one);
    stack_.emplace_back(std::move(one));
    return true;
  }

  static std::optional<double> element_of(const c10::IValue& result) {
    if (!result.isTensor() || result.toTensor().numel() != 1) return std::nullopt;
    return result.toTensor().item<double>();
  }

  const Operator& op_;
  std::vector<c10::IValue> stack_;
  std::vector<at::Tensor> targets_;
  bool zeros_ = true;
};

bool takes_one(c10::ArrayRef<const c10::IValue> arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& value) {
    if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().is_cuda())
      return false;
    const at::Tensor& tensor = value.toTensor();
    return can_be_read(tensor) && bytes_of(tensor) > kSmallest && is_uniform(value_of_card(tensor));
  });
}

}  // namespace

void put_uniform(const at::Tensor& tensor, double element) {
  if (bytes_of(tensor) > kSmallest) there_are_any.store(true, std::memory_order_relaxed);
  auto value = unknown(bytes_of(tensor), {tensor.scalar_type(), element});
  value->purpose = Purpose::finite_check;
  Storages::all().put(base_of(tensor), std::move(value));
}

std::optional<Uniform> call_uniformly(const Operator& op,
                                      c10::ArrayRef<const c10::IValue> arguments) {
  if (!there_are_any.load(std::memory_order_relaxed) || !takes_one(arguments)) return std::nullopt;
  const Unseen unseen;
  Caller caller(op);
  return caller.takes(arguments) ? caller.called() : std::nullopt;
}

}  // namespace peakbench::values
