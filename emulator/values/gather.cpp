#include "values/gather.h"

#include <ATen/EmptyTensor.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstring>

#include "values/host.h"
#include "values/record.h"
#include "values/storages.h"
#include "values/unspecified.h"

namespace peakbench::values {
namespace {

// A longer list with something unknown in it is one of parameters or gradients.
constexpr std::size_t kShortList = 8;

bool on_card(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_cuda();
}

bool is_tensor_list(const c10::IValue& value) {
  return value.isTensorList() || value.isOptionalTensorList();
}

// Without a dispatcher, whose observers would have to be kept from seeing it at some cost.
at::Tensor empty_on_host(const at::Tensor& tensor) {
  return at::detail::empty_cpu(tensor.sizes(), tensor.scalar_type());
}

// Of one that is only said to be zeros (forward-mode differentiation), on either side.
at::Tensor zeros_on_host(const at::Tensor& tensor) {
  at::Tensor zeros = empty_on_host(tensor);
  if (zeros.nbytes() != 0) std::memset(zeros.mutable_data_ptr(), 0, zeros.nbytes());
  return zeros;
}

at::Tensor clone_of_host(const at::Tensor& tensor) {
  if (tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()) {
    at::Tensor copy = empty_on_host(tensor);
    if (tensor.nbytes() != 0)
      std::memcpy(copy.mutable_data_ptr(), tensor.data_ptr(), tensor.nbytes());
    return copy;
  }
  const Unseen unseen;
  return tensor.clone();
}

at::Tensor copy_of_host(const at::Tensor& tensor) {
  at::Tensor copy = clone_of_host(tensor);
  // A Python number: it does not take part in the promotion of types.
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);
  return copy;
}

class Gatherer {
 public:
  explicit Gatherer(const Operator& op) : op_(op) {}

  Call gathered(c10::ArrayRef<const c10::IValue> arguments) {
    call_.uniform = call_uniformly(op_, arguments);
    if (call_.uniform || rests_on_large(arguments)) return lost(arguments);
    call_.node = std::make_shared<Node>();
    Node& node = *call_.node;
    node.op = &op_;
    call_.size_of = size_of_call(op_, arguments);
    node.arguments.resize(arguments.size());
    node.list_sizes.assign(arguments.size(), -1);
    node.tf32 = may_round_to_tf32(op_);
    node.random = op_.random && !is_zero(arguments, op_.chance) && !is_off(arguments);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (is_used(static_cast<int>(i))) add(static_cast<int>(i), arguments[i]);
    take_range(arguments);
    if (!is_off(arguments)) take_hidden(arguments);
    return std::move(call_);
  }

 private:
  static bool is_zero(c10::ArrayRef<const c10::IValue> arguments, int argument) {
    const auto at = static_cast<std::size_t>(argument);
    return argument >= 0 && at < arguments.size() && arguments[at].isDouble() &&
           arguments[at].toDouble() == 0;
  }

  // What only the card's own kernel looks at.
  bool is_used(int argument) const { return !op_.equivalent || op_.equivalent->uses(argument); }

  // Not in training.
  bool is_off(c10::ArrayRef<const c10::IValue> arguments) const {
    const auto at = static_cast<std::size_t>(op_.training);
    return op_.training >= 0 && at < arguments.size() && arguments[at].isBool() &&
           !arguments[at].toBool();
  }

  void take_hidden(c10::ArrayRef<const c10::IValue> arguments) {
    for (const int hidden : op_.hidden_targets)
      for_each_tensor(arguments[static_cast<std::size_t>(hidden)], [&](const at::Tensor& tensor) {
        if (tensor.defined()) call_.hidden.emplace_back(hidden, tensor);
      });
  }

  bool writes(int argument) const {
    return static_cast<std::size_t>(argument) < op_.writes.size() &&
           op_.writes[static_cast<std::size_t>(argument)];
  }

  // Most calls of a training step: no value can come of them, so that what they take need not be
  // written down. Lists may have some positions that are known.
  bool rests_on_large(c10::ArrayRef<const c10::IValue> arguments) const {
    if (size_of_call(op_, arguments) != SizeOf::nothing ||
        std::ranges::any_of(arguments, is_tensor_list))
      return false;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (on_card(arguments[i]) && !writes(static_cast<int>(i)) && is_used(static_cast<int>(i)) &&
          is_large(arguments[i].toTensor()))
        return true;
    return false;
  }

  bool is_large(const at::Tensor& tensor) const {
    return can_be_read(tensor) && bytes_of(tensor) > kLargest && !large_value(tensor);
  }

  // Of integers that are known, mostly.
  ValuePtr large_value(const at::Tensor& tensor) const {
    if (bytes_of(tensor) > largest_for(op_, tensor.scalar_type())) return nullptr;
    return Storages::all().find(base_of(tensor), bytes_of(tensor));
  }

  Call lost(c10::ArrayRef<const c10::IValue> arguments) {
    if (!is_off(arguments)) take_hidden(arguments);
    call_.node = op_.lost;
    call_.lost = true;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (!arguments[i].isTensor() || !arguments[i].toTensor().defined()) continue;
      const at::Tensor& tensor = arguments[i].toTensor();
      add_target(static_cast<int>(i), -1, tensor);
      if (can_be_read(tensor)) call_.storages.push_back(tensor.storage().unsafeGetStorageImpl());
    }
    take_range(arguments);
    return std::move(call_);
  }

  void add_target(int argument, int index, const at::Tensor& tensor) {
    if (!writes(argument)) return;
    call_.targets.push_back(tensor);
    call_.target_places.emplace_back(argument, index);
    call_.target_on_host |= !tensor.is_cuda();
  }

  void add(int argument, const c10::IValue& value) {
    if (value.isTensor()) {
      add_tensor(argument, -1, value.toTensor(), 1);
    } else if (is_tensor_list(value)) {
      const auto list = value.toListRef();
      call_.node->list_sizes[static_cast<std::size_t>(argument)] = static_cast<int>(list.size());
      for (std::size_t i = 0; i < list.size(); ++i)
        add_tensor(argument, static_cast<int>(i),
                   list[i].isTensor() ? list[i].toTensor() : at::Tensor(), list.size());
    } else if (value.isDevice()) {
      call_.node->arguments[static_cast<std::size_t>(argument)] = c10::Device(c10::kCPU);
    } else if (!value.isGenerator()) {
      call_.node->arguments[static_cast<std::size_t>(argument)] = value;
    }
  }

  void add_tensor(int argument, int index, const at::Tensor& tensor, std::size_t list_size) {
    if (tensor.defined()) add_target(argument, index, tensor);
    Input input;
    input.argument = argument;
    input.index = index;
    if (!tensor.defined()) {
    } else if (tensor._is_zerotensor() && !writes(argument)) {
      input.constant = zeros_on_host(tensor);
    } else if (!tensor.is_cuda()) {
      add_host(input, tensor);
    } else if (tensor.layout() != at::kStrided) {
      return add_sparse(input, tensor, list_size);
    } else if (can_be_read(tensor) && (has_storage(tensor) || !writes(argument))) {
      add_device(input, tensor, list_size);
    } else if (is_plain(tensor) && tensor.numel() == 0) {
      input.constant = empty_on_host(tensor);
    } else {
      call_.lost = true;
    }
    call_.node->inputs.push_back(std::move(input));
  }

  void add_host(Input& input, const at::Tensor& tensor) {
    // A fake tensor (torch.compile) says that it is on the CPU, and has no bytes there.
    const bool plain = is_plain(tensor) && tensor.is_cpu() &&
                       tensor.nbytes() <= largest_for(op_, tensor.scalar_type());
    if (!plain || call_.target_on_host) {
      call_.lost = true;
    } else if (is_marked_on_host(tensor, stream_that_copies())) {
      add_marked(input, tensor);
    } else {
      input.constant = copy_of_host(tensor);
    }
  }

  // Of a copy from the host: it looks at the numbers when it is its turn.
  std::optional<std::uint64_t> stream_that_copies() const {
    if (!op_.is_copy) return std::nullopt;
    const auto stream = c10::cuda::getCurrentCUDAStream().stream();
    return reinterpret_cast<std::uint64_t>(stream);
  }

  // Numbers that came from the card and are not known.
  void add_marked(Input& input, const at::Tensor& tensor) {
    const at::Tensor copy = copy_of_host(tensor);
    const auto bytes = static_cast<std::int64_t>(copy.nbytes());
    at::Tensor data = at::detail::empty_cpu({bytes}, at::kByte);
    if (bytes != 0)
      std::memcpy(data.mutable_data_ptr(), copy.data_ptr(), static_cast<std::size_t>(bytes));
    input.view = view_of(copy);
    input.value = known(std::move(data));
    input.value->substituted = true;
    input.value->foreign_work = foreign_work();
    call_.node->substituted = true;
  }

  // As its parts, one input each.
  void add_sparse(Input input, const at::Tensor& tensor, std::size_t list_size) {
    const auto parts = parts_of(tensor);
    call_.lost |= parts.empty() || writes(input.argument);
    if (call_.lost) return call_.node->inputs.push_back(std::move(input));
    const Unseen unseen;
    const bool coalesced = tensor.layout() == at::kSparse && tensor.is_coalesced();
    call_.node->sparse.push_back({input.argument, input.index, tensor.layout(), {}, coalesced});
    call_.node->sparse.back().sizes.assign(tensor.sizes().begin(), tensor.sizes().end());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Input one = input;
      one.part = static_cast<int>(i);
      if (has_storage(parts[i])) {
        add_device(one, parts[i], list_size);
      } else {
        one.constant = empty_on_host(parts[i]);
      }
      call_.node->inputs.push_back(std::move(one));
    }
  }

  void add_device(Input& input, const at::Tensor& tensor, std::size_t list_size) {
    call_.storages.push_back(tensor.storage().unsafeGetStorageImpl());
    const auto base = base_of(tensor);
    const auto bytes = bytes_of(tensor);
    if (bytes <= largest_for(op_, tensor.scalar_type()))
      input.value = Storages::all().find(base, bytes);
    if (input.value) {
      input.view = view_of(tensor);
      // Of what is written, `record` knows what of it stays.
      if (!writes(input.argument)) call_.node->substituted |= doubtful(*input.value, input.view);
      call_.node->depth = std::max(call_.node->depth, input.value->depth + 1);
      return;
    }
    input.absent_base = base;
    input.absent_bytes = bytes;
    if (list_size <= kShortList) input.view = view_of(tensor);
    // What is written wholly needs no value; `record` decides for the others.
    if (writes(input.argument)) return;
    call_.largest_absent_bytes = std::max(call_.largest_absent_bytes, bytes);
    if (bytes > kLargest || list_size > kShortList) call_.lost = true;
  }

  void take_range(c10::ArrayRef<const c10::IValue> arguments) {
    if (arguments.empty() || !arguments[0].isTensor()) return;
    const at::Tensor& first = arguments[0].toTensor();
    // A size that is a symbol would be fixed by asking for it.
    if (!is_plain(first) || first.dim() == 0) return;
    std::int64_t dim = -1;
    const auto at = static_cast<std::size_t>(op_.dim);
    const bool has_dim = op_.dim >= 0 && at < arguments.size() && arguments[at].isInt();
    if (has_dim) dim = arguments[at].toInt();
    if (dim < -first.dim() || dim >= first.dim()) return;
    call_.range = std::max<std::int64_t>(first.size(dim), 1);
    call_.most = most_of(first, has_dim);
  }

  // 0: not known.
  std::int64_t most_of(const at::Tensor& first, bool has_dim) const {
    switch (op_.bound) {
      case IntegerBound::truths:
        return first.scalar_type() == at::kBool ? first.numel() : 0;
      case IntegerBound::elements:
        return first.numel();
      case IntegerBound::places:
        if (!c10::isFloatingType(first.scalar_type())) return 0;
        return (has_dim ? call_.range : first.numel()) - 1;
      case IntegerBound::unknown:
        break;
    }
    return 0;
  }

  const Operator& op_;
  Call call_;
};

}  // namespace

bool is_computable(const Call& call) {
  const Operator& op = *call.node->op;
  return call.node->sparse.empty() ? op.computable : op.computable_sparse;
}

bool has_wrapper(c10::ArrayRef<const c10::IValue> arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& value) {
    if (value.isTensor()) return is_wrapper(value.toTensor());
    return is_tensor_list(value) &&
           std::ranges::any_of(value.toListRef(), [](const c10::IValue& one) {
             return one.isTensor() && is_wrapper(one.toTensor());
           });
  });
}

bool are_all(at::Layout layout, c10::ArrayRef<const c10::IValue> arguments) {
  bool any = false;
  for (const c10::IValue& value : arguments) {
    if (!value.isTensor()) continue;
    if (!value.toTensor().defined() || value.toTensor().layout() != layout) return false;
    any = true;
  }
  return any;
}

namespace {

// The kernel for shorter rows reads nothing back: mode_kernel_impl in
// aten/src/ATen/native/cuda/TensorModeKernel.cpp.
bool has_long_rows(const Operator& op, c10::ArrayRef<const c10::IValue> arguments) {
  constexpr std::int64_t kLongestInABlock = 2048;
  const at::Tensor& self = arguments[0].toTensor();
  const c10::IValue& dim = arguments[static_cast<std::size_t>(op.dim)];
  if (!dim.isInt() || dim.toInt() < -self.dim() || dim.toInt() >= self.dim()) return false;
  return self.size(dim.toInt()) > kLongestInABlock;
}

}  // namespace

SizeOf size_of_call(const Operator& op, c10::ArrayRef<const c10::IValue> arguments) {
  if (op.size_of == SizeOf::mode && !has_long_rows(op, arguments)) return SizeOf::nothing;
  const bool of_rows =
      op.size_of_rows != SizeOf::nothing && !op.mutates && are_all(at::kSparseCsr, arguments);
  return of_rows ? op.size_of_rows : op.size_of;
}

bool uses_card(c10::ArrayRef<const c10::IValue> arguments) {
  return std::ranges::any_of(arguments, [](const c10::IValue& value) {
    if (value.isTensor()) return on_card(value);
    if (is_tensor_list(value)) return std::ranges::any_of(value.toListRef(), on_card);
    return value.isDevice() && value.toDevice().is_cuda();
  });
}

Call gather(const Operator& op, c10::ArrayRef<const c10::IValue> arguments) {
  return Gatherer(op).gathered(arguments);
}

void fill_absent(Call& call) {
  for (Input& input : call.node->inputs) {
    if (!input.absent_base || input.target >= 0) continue;
    input.value = unknown(input.absent_bytes, {input.view.dtype, {}, 1});
    input.absent_base = 0;
    call.node->substituted = true;
    call.node->depth = std::max(call.node->depth, 1);
  }
}

}  // namespace peakbench::values
