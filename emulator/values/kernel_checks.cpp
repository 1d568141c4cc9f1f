// As the kernels of aten/src/ATen/native/cuda have them (CUDA_KERNEL_ASSERT): Indexing.cu,
// IndexKernel.cu, ScatterGatherKernel.cu, EmbeddingBag.cu, Loss.cu, NLLLoss2d.cu,
// MultiMarginLoss.cu, MaxUnpooling.cu, DistributionBernoulli.cu and TensorCompare.cu.
#include "values/kernel_checks.h"

#include <ATen/Context.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "core/values_hook.h"
#include "values/gather.h"
#include "values/host.h"
#include "values/patch.h"
#include "values/storages.h"

namespace peakbench::values {
namespace {

constexpr auto kChecks = std::to_array<KernelCheck>({
    {"aten::embedding", "indices", Bound::rows},
    {"aten::_embedding_bag", "indices", Bound::rows},
    {"aten::_embedding_bag_forward_only", "indices", Bound::rows},
    {"aten::index_select", "index", Bound::dimension},
    {"aten::gather", "index", Bound::dimension},
    {"aten::scatter", "index", Bound::dimension},
    {"aten::scatter_add", "index", Bound::dimension},
    {"aten::scatter_reduce", "index", Bound::dimension},
    {"aten::index_add", "index", Bound::dimension},
    {"aten::index_copy", "index", Bound::dimension},
    {"aten::index_reduce", "index", Bound::dimension},
    {"aten::index_fill", "index", Bound::dimension, true},
    {"aten::take", "index", Bound::elements, true},
    {"aten::put", "index", Bound::elements, true},
    {"aten::index", "indices", Bound::listed, true},
    {"aten::index_put", "indices", Bound::listed, true},
    {"aten::_index_put_impl", "indices", Bound::listed, true},
    {"aten::nll_loss_forward", "target", Bound::classes},
    {"aten::nll_loss2d_forward", "target", Bound::classes},
    {"aten::multi_margin_loss", "target", Bound::classes},
    {"aten::max_unpool2d", "indices", Bound::image},
    {"aten::max_unpool3d", "indices", Bound::image},
    {"aten::binary_cross_entropy", "self", Bound::probability},
    {"aten::bernoulli", "p", Bound::probability},
    {"aten::masked_scatter", "mask", Bound::places},
    {"aten::_assert_async", "self", Bound::truth},
});

using Arguments = c10::ArrayRef<const c10::IValue>;

// A tensor's elements, where they are known; undefined where they are not. Call with the lock.
at::Tensor known_elements(const at::Tensor& tensor, Choices& choices) {
  if (!is_plain(tensor) || tensor.numel() == 0) return {};
  if (tensor.is_cpu()) return is_marked_on_host(tensor) ? at::Tensor() : tensor;
  if (!tensor.is_cuda() || !has_storage(tensor)) return {};
  const ValuePtr value = Storages::all().find(base_of(tensor), bytes_of(tensor));
  const View view = view_of(tensor);
  // What other processes send is not waited for.
  if (!value || waits(value) || doubtful(*value, view)) return {};
  compute(*value);
  if (doubtful(*value, view)) return {};
  choices.add(value->choices);
  return tensor_in(value->data, view);
}

std::int64_t extent_of(const at::Tensor& tensor, std::int64_t dim) {
  return tensor.dim() == 0 ? 1 : tensor.size(dim);
}

// The first that is found to be wrong, in words; empty: none is.
std::string wrong_index(at::Tensor index, std::int64_t size, bool from_end,
                        std::optional<std::int64_t> ignored = std::nullopt) {
  const auto lowest = from_end ? -size : 0;
  const auto look = [&]() -> std::string {
    const auto [least, most] = at::aminmax(index);
    const auto low = least.item().toLong(), high = most.item().toLong();
    if (low >= lowest && high < size) return "";
    return "index " + std::to_string(low < lowest ? low : high) + " of " + std::to_string(size);
  };
  std::string wrong = look();
  if (wrong.empty() || !ignored) return wrong;
  index = index.masked_select(index.ne(*ignored));
  return index.numel() == 0 ? "" : look();
}

class Check {
 public:
  Check(const Operator& op, Arguments arguments)
      : op_(op), arguments_(arguments), first_(arguments[0].toTensor()) {}

  std::string wrong() {
    const auto* looked_at = argument_of(op_, arguments_, op_.check->argument);
    if (!looked_at || !is_plain(first_)) return "";
    if (op_.check->bound == Bound::listed) return wrong_in_list(*looked_at);
    if (!looked_at->isTensor() || first_.numel() == 0) return "";
    const at::Tensor elements = known_elements(looked_at->toTensor(), choices_);
    return elements.defined() ? wrong_in(elements) : "";
  }

  const Choices& choices() const { return choices_; }

 private:
  std::string wrong_in(const at::Tensor& elements) const {
    switch (op_.check->bound) {
      case Bound::probability:
        return elements.ge(0).logical_and(elements.le(1)).all().item<bool>() ? ""
                                                                             : "not from 0 to 1";
      case Bound::truth:
        return elements.ne(0).all().item<bool>() ? "" : message();
      case Bound::places:
        return wrong_places(elements);
      default:
        return wrong_index(elements, limit(), op_.check->from_end, ignored());
    }
  }

  std::int64_t limit() const {
    switch (op_.check->bound) {
      case Bound::rows:
        return extent_of(first_, 0);
      case Bound::elements:
        return first_.numel();
      case Bound::classes:
        return extent_of(first_, first_.dim() > 1 ? 1 : 0);
      case Bound::image:
        return image();
      default:
        return extent_of(first_, argument_of(op_, arguments_, "dim")->toInt());
    }
  }

  std::int64_t image() const {
    std::int64_t elements = 1;
    for (const std::int64_t size : argument_of(op_, arguments_, "output_size")->toIntVector())
      elements *= size;
    return elements;
  }

  std::optional<std::int64_t> ignored() const {
    const auto* value = argument_of(op_, arguments_, "ignore_index");
    return value && value->isInt() ? std::optional(value->toInt()) : std::nullopt;
  }

  std::string message() const {
    const auto* text = argument_of(op_, arguments_, "assert_msg");
    return text && text->isString() ? text->toStringRef() : "what it asserts is false";
  }

  std::string wrong_places(const at::Tensor& mask) const {
    const auto values = argument_of(op_, arguments_, "source")->toTensor().numel();
    const auto places = mask.expand(first_.sizes()).sum().item<std::int64_t>();
    return places <= values
               ? ""
               : std::to_string(places) + " places for " + std::to_string(values) + " values";
  }

  // Masks take the place of as many dimensions as they have. Sums are made by sorting, where the
  // host makes the check.
  std::string wrong_in_list(const c10::IValue& list) {
    const auto* accumulate = argument_of(op_, arguments_, "accumulate");
    const bool writes = accumulate != nullptr;
    if (writes && (accumulate->toBool() || at::globalContext().deterministicAlgorithms()))
      return "";
    if (first_.numel() == 0) return "";
    std::int64_t dim = 0;
    for (const c10::IValue& one : list.toListRef()) {
      if (!one.isTensor() || !one.toTensor().defined()) {
        ++dim;
        continue;
      }
      const at::Tensor& index = one.toTensor();
      if (index.scalar_type() == at::kBool || index.scalar_type() == at::kByte) {
        dim += index.dim();
        continue;
      }
      const at::Tensor elements = known_elements(index, choices_);
      const auto size = extent_of(first_, dim++);
      std::string wrong = elements.defined() ? wrong_index(elements, size, true) : "";
      if (!wrong.empty()) return wrong;
    }
    return "";
  }

  const Operator& op_;
  Arguments arguments_;
  const at::Tensor& first_;
  Choices choices_;
};

}  // namespace

const KernelCheck* kernel_check_of(std::string_view plain_name) {
  const auto* found = std::ranges::find(kChecks, plain_name, &KernelCheck::name);
  return found == kChecks.end() ? nullptr : found;
}

void check_as_a_kernel(const Operator& op, c10::ArrayRef<const c10::IValue> arguments) {
  if (arguments.empty() || !arguments[0].isTensor() || !arguments[0].toTensor().is_cuda()) return;
  Check check(op, arguments);
  std::string wrong;
  try {
    const std::lock_guard lock(Storages::all().mutex());
    const Unseen unseen;
    wrong = check.wrong();
  } catch (const std::exception&) {  // nothing that such a kernel takes, which PyTorch says
    return;
  }
  if (wrong.empty()) return;
  check.choices().tell(/*known=*/true);
  peakbench_emulator_assert_failed(arguments[0].toTensor().device().index(), op.name.c_str(),
                                   wrong.c_str());
}

}  // namespace peakbench::values
