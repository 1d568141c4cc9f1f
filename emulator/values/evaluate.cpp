#include "values/evaluate.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>

#include "core/values_hook.h"
#include "values/card_arithmetic.h"
#include "values/operators.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

// While it lives, random operators draw from a seed of ours; the program's own generator is put
// back.
class Seeded {
 public:
  explicit Seeded(const Node& node) : random_(node.random) {
    if (!random_) return;
    state_ = generator_.get_state();
    generator_.set_current_seed(node.sequence + (guess() << 32U));
  }
  Seeded(const Seeded&) = delete;
  Seeded& operator=(const Seeded&) = delete;
  ~Seeded() {
    if (random_) generator_.set_state(state_);
  }

 private:
  bool random_;
  at::Generator generator_ = at::detail::getDefaultCPUGenerator();
  at::Tensor state_;
};

using Lists = std::map<int, std::vector<at::Tensor>>;
using Parts = std::map<std::pair<int, int>, std::vector<at::Tensor>>;

at::Tensor sparse_of(const Sparse& what, const std::vector<at::Tensor>& parts) {
  const auto options = parts.back().options().layout(what.layout);
  if (what.layout == at::kSparse)
    return at::_sparse_coo_tensor_unsafe(parts[0], parts[1], what.sizes, options, what.coalesced);
  return at::_sparse_compressed_tensor_unsafe(parts[0], parts[1], parts[2], what.sizes, options);
}

void put_list(const Node& node, int argument, const std::vector<at::Tensor>& tensors,
              std::vector<c10::IValue>& stack) {
  if (!node.op->optional_list[static_cast<std::size_t>(argument)]) {
    stack[static_cast<std::size_t>(argument)] = c10::List<at::Tensor>(tensors);
    return;
  }
  c10::List<std::optional<at::Tensor>> optional;
  for (const auto& tensor : tensors)
    optional.push_back(tensor.defined() ? std::optional<at::Tensor>(tensor) : std::nullopt);
  stack[static_cast<std::size_t>(argument)] = optional;
}

at::Tensor whole_result_of(const std::vector<c10::IValue>& stack, const Output& output) {
  if (output.result < 0 || output.result >= static_cast<int>(stack.size())) return {};
  const c10::IValue& result = stack[static_cast<std::size_t>(output.result)];
  if (output.index < 0) return result.isTensor() ? result.toTensor() : at::Tensor();
  if (!result.isTensorList()) return {};
  const auto list = result.toTensorVector();
  return static_cast<std::size_t>(output.index) < list.size()
             ? list[static_cast<std::size_t>(output.index)]
             : at::Tensor();
}

at::Tensor result_of(const std::vector<c10::IValue>& stack, const Output& output) {
  const at::Tensor whole = whole_result_of(stack, output);
  if (output.part < 0) return whole;
  const auto parts = parts_of(whole);
  return static_cast<std::size_t>(output.part) < parts.size()
             ? parts[static_cast<std::size_t>(output.part)]
             : at::Tensor();
}

// Whether a factorisation went well. Of values that nobody knows it is taken to have, as gradients
// are taken to be finite.
bool tells_success(const Node& node, const Output& output) {
  if (output.result < 0 || !node.op->handle) return false;
  const auto& returns = node.op->handle->schema().returns();
  const auto index = static_cast<std::size_t>(output.result);
  return index < returns.size() &&
         (returns[index].name() == "info" || returns[index].name() == "infos");
}

bool any_substituted(const Node& node) {
  bool any = node.substituted || std::ranges::any_of(node.inputs, is_unsure_input);
  for (const Output& output : node.outputs) any |= output.before && output.before->substituted;
  return any;
}

std::vector<at::Tensor> targets_of(const Node& node, const Sides& sides) {
  std::vector<at::Tensor> targets;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const Output& output = node.outputs[i];
    if (output.shared >= 0) {
      targets.push_back(targets[static_cast<std::size_t>(output.shared)]);
      continue;
    }
    if (output.before) compute(*output.before);
    targets.push_back(output.before
                          ? bytes_on(*output.before, sides.of_before(i)).clone()
                          : at::zeros({static_cast<std::int64_t>(output.bytes)}, at::kByte));
  }
  return targets;
}

at::Tensor widened(const at::Tensor& low, const at::Tensor& high, Make make) {
  if (!low.defined()) return low;
  at::Tensor wide;
  if (c10::isComplexType(low.scalar_type())) {
    wide = low.to(at::kComplexDouble, false, /*copy=*/true);
  } else if (c10::isFloatingType(low.scalar_type())) {
    wide = make(low.to(at::kDouble), high.to(at::kDouble));
  } else {
    wide = low.clone();
  }
  if (low.unsafeGetTensorImpl()->is_wrapped_number())
    wide.unsafeGetTensorImpl()->set_wrapped_number(true);
  return wide;
}

c10::IValue widened(const c10::IValue& low, const c10::IValue& high, Make make) {
  if (low.isTensor()) return widened(low.toTensor(), high.toTensor(), make);
  if (!low.isTensorList()) return low;  // lists of optional tensors hold indices
  const auto lows = low.toTensorVector(), highs = high.toTensorVector();
  std::vector<at::Tensor> wide;
  for (std::size_t i = 0; i < lows.size(); ++i) wide.push_back(widened(lows[i], highs[i], make));
  return c10::List<at::Tensor>(wide);
}

at::Tensor argument_at(const Stack& arguments, const Input& input) {
  const c10::IValue& argument = arguments[static_cast<std::size_t>(input.argument)];
  if (input.index < 0) return argument.toTensor();
  return argument.toListRef()[static_cast<std::size_t>(input.index)].toTensor();
}

// PyTorch throws the same where the host has not got the memory as where it refuses.
bool host_has_memory_for(const Node& node, const Stack& arguments) {
  std::size_t bytes = 1;
  for (const Output& output : node.outputs) bytes += output.bytes;
  for (const c10::IValue& argument : arguments)
    if (argument.isTensor() && argument.toTensor().defined())
      bytes += static_cast<std::size_t>(argument.toTensor().numel()) * sizeof(double);
  const std::unique_ptr<char[]> memory(new (std::nothrow) char[bytes]);
  return memory != nullptr;
}

}  // namespace

std::uint64_t guess() {
  static const std::uint64_t number = [] {
    const char* text = std::getenv(emulator::kGuessVariable);
    return text ? std::strtoull(text, nullptr, 10) : 0ULL;
  }();
  return number;
}

const at::Tensor& bytes_on(const Value& value, Side side) {
  if (side == Side::data || !value.rounded.is_bounded()) return value.data;
  return side == Side::low ? value.rounded.low : value.rounded.high;
}

Sides Sides::all(const Node& node, Side side) {
  return {std::vector<Side>(node.inputs.size(), side),
          std::vector<Side>(node.outputs.size(), side)};
}

Stack stack_of(const Node& node, const std::vector<at::Tensor>& targets, const Sides& sides) {
  Stack stack = node.arguments;
  Lists lists;
  for (std::size_t i = 0; i < node.list_sizes.size(); ++i)
    if (node.list_sizes[i] >= 0)
      lists[static_cast<int>(i)].resize(static_cast<std::size_t>(node.list_sizes[i]));
  Parts parts;
  const auto put = [&](int argument, int index, const at::Tensor& tensor) {
    if (index < 0) {
      stack[static_cast<std::size_t>(argument)] = tensor;
    } else {
      lists[argument][static_cast<std::size_t>(index)] = tensor;
    }
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Input& input = node.inputs[i];
    at::Tensor tensor = input.constant;
    if (input.target >= 0) {
      tensor = tensor_in(targets[static_cast<std::size_t>(input.target)], input.view);
    } else if (input.value) {
      compute(*input.value);
      tensor = tensor_in(bytes_on(*input.value, sides.of_input(i)), input.view);
    }
    if (input.part >= 0) {
      parts[{input.argument, input.index}].push_back(tensor);
    } else {
      put(input.argument, input.index, tensor);
    }
  }
  for (const Sparse& what : node.sparse)
    put(what.argument, what.index, sparse_of(what, parts.at({what.argument, what.index})));
  for (const auto& [argument, tensors] : lists) put_list(node, argument, tensors, stack);
  return stack;
}

bool run(const Node& node, Stack& stack) {
  // An operator with several `out` arguments (kthvalue) returns references to what lay on the
  // stack, which PyTorch's boxing takes off it before it copies them: somebody must still have
  // them.
  const Stack held = stack;
  try {
    const Seeded seeded(node);
    if (node.op->equivalent) {
      node.op->equivalent->call(stack);
    } else if (!call_as_a_card(node, stack)) {
      node.op->handle->callBoxed(&stack);
    }
    return true;
  } catch (const c10::Error&) {  // no such kernel on the CPU, or values that it refuses
    if (!host_has_memory_for(node, held)) throw std::bad_alloc();
    return false;
  }
}

bool is_unsure_input(const Input& input) {
  return input.value && is_unsure(*input.value, input.view);
}

Evaluation evaluate(const Node& node, const Sides& sides) {
  Evaluation got;
  got.bytes = targets_of(node, sides);
  got.arguments = got.results = stack_of(node, got.bytes, sides);
  got.substituted = any_substituted(node);
  got.done = run(node, got.results);
  got.right.assign(node.outputs.size(), got.done);
  for (std::size_t i = 0; i < node.outputs.size() && got.done; ++i) {
    const Output& output = node.outputs[i];
    if (output.result < 0) continue;
    const at::Tensor result = result_of(got.results, output);
    got.right[i] = result.defined() && result.sizes() == c10::IntArrayRef(output.view.sizes);
    if (got.right[i] && !(got.substituted && tells_success(node, output)))
      tensor_in(got.bytes[i], output.view).copy_(result);
    if (output.shared >= 0 && !got.right[i])
      got.right[static_cast<std::size_t>(output.shared)] = false;
  }
  return got;
}

std::vector<at::Tensor> evaluate_widely(const Node& node, Make make) {
  const auto low = Sides::all(node, Side::low), high = Sides::all(node, Side::high);
  // The tensors of the stacks lie in these bytes.
  const auto low_targets = targets_of(node, low), high_targets = targets_of(node, high);
  Stack stack = stack_of(node, low_targets, low);
  const Stack highs = stack_of(node, high_targets, high);
  for (std::size_t i = 0; i < stack.size(); ++i) stack[i] = widened(stack[i], highs[i], make);
  const Stack arguments = stack;
  if (!run(node, stack)) return {};
  std::vector<at::Tensor> outputs(node.outputs.size());
  for (const Input& input : node.inputs)
    if (input.target >= 0)
      outputs[static_cast<std::size_t>(input.target)] = argument_at(arguments, input);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (node.outputs[i].result >= 0) outputs[i] = result_of(stack, node.outputs[i]);
    if (!outputs[i].defined() || outputs[i].sizes() != c10::IntArrayRef(node.outputs[i].view.sizes))
      return {};
  }
  return outputs;
}

}  // namespace peakbench::values
