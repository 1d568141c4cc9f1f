#include "worker/batches.h"

#include <ATen/ATen.h>

#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "errors/errors.h"

namespace peakbench::worker {
namespace {

// Throws std::logic_error. `name` is the tensor's, `samples` the input's.
void check_named(const NamedTensor& one, std::int64_t samples) {
  if (one.name.empty()) throw std::logic_error("a tensor of the batch has no name");
  const std::string name = "the batch's tensor \"" + one.name + "\" ";
  if (!one.tensor.defined()) throw std::logic_error(name + "is undefined; leave it out");
  if (!one.per_sample || (one.tensor.dim() > 0 && one.tensor.size(0) == samples)) return;
  throw std::logic_error(name +
                         (one.tensor.dim() == 0 ? "is a scalar"
                                                : "has " + std::to_string(one.tensor.size(0)) +
                                                      " along its first dimension") +
                         ", and the batch has " + std::to_string(samples) +
                         " samples; say per_sample = false of one that is not split with them");
}

}  // namespace

Batches::Batches(Model& model, Owner model_owner, const BatchShape& shape, std::uint64_t seed,
                 bool changes, RecordObserver* observer)
    : model_(model),
      owner_(std::move(model_owner)),
      shape_(shape),
      seed_(seed),
      changes_(changes),
      observer_(observer) {
  // Whatever the stack's transforms have drawn: every stack of a seed trains on one batch.
  at::manual_seed(seed_);
  batch_ = call_plugin(owner_, "make_batch", [&] {
    Batch made = model_.make_batch(shape_);
    check(made);
    return made;
  });
  first_shape_ = batch_.input.sizes().vec();
  name();
}

const Batch& Batches::of_step(std::int64_t step) {
  if (step == 0 || (!changes_ && step > 1)) return batch_;
  const bool gives_up_first = changes_ && !model_.keeps_batch_until_next();
  if (gives_up_first) batch_ = {};
  auto next = make_next(step);
  if (next && !changes_)
    throw PluginError(owner_.path + ": " + owner_.id +
                      " makes another batch for the second step, which its manifest does not "
                      "declare: put \"changes_batch\" into \"facts\" of plugin.json");
  if (!next && changes_)
    throw PluginError(owner_.path + ": " + owner_.id +
                      " declares changes_batch and makes no batch for step " +
                      std::to_string(step + 1) + ": next_batch returned none");
  if (!next) return batch_;
  batch_ = std::move(*next);
  shapes_differ_ = shapes_differ_ || batch_.input.sizes().vec() != first_shape_;
  name();
  return batch_;
}

std::optional<Batch> Batches::make_next(std::int64_t step) {
  // Whatever the steps have drawn. One that makes no batches draws as if this were not here.
  if (changes_) at::manual_seed(seed_ + static_cast<std::uint64_t>(step));
  return call_plugin(owner_, "next_batch", [&] {
    auto made = model_.next_batch(step, shape_);
    if (made) check(*made);
    return made;
  });
}

void Batches::check(const Batch& batch) const {
  if (!batch.input.defined() || batch.input.dim() == 0)
    throw std::logic_error("the batch has no input with a first dimension of samples");
  const std::int64_t samples = batch.input.size(0);
  if (!first_shape_.empty() && samples != first_shape_[0])
    throw std::logic_error("it makes " + std::to_string(samples) +
                           " samples, and the first batch has " + std::to_string(first_shape_[0]) +
                           "; lengths may differ from step to step, the number of samples may not");
  std::set<std::string> names{"input", "target"};
  for (const NamedTensor& one : batch.named) {
    check_named(one, samples);
    if (!names.insert(one.name).second)
      throw std::logic_error("the batch has two tensors of the name \"" + one.name + "\"");
  }
}

void Batches::name() const {
  if (observer_ == nullptr) return;
  observer_->name_storage(batch_.input, StorageRole::kInput, "input");
  observer_->name_storage(batch_.target, StorageRole::kInput, "target");
  for (const NamedTensor& one : batch_.named)
    observer_->name_storage(one.tensor, StorageRole::kInput, one.name);
}

}  // namespace peakbench::worker
