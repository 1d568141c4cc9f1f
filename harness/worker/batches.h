// The batch of each step: one for all of them, or one after the other.
#pragma once

#include <cstdint>
#include <optional>

#include "peakbench/model.h"
#include "worker/plugin_call.h"
#include "worker/record_observer.h"

namespace peakbench::worker {

class Batches {
 public:
  // Makes the first. `changes`: the model's manifest declares `changes_batch`. With an observer,
  // names the tensors of each batch to it. Throws PluginFailure where the model's code does, or
  // makes what is no batch. The model must outlive this.
  Batches(Model& model, Owner model_owner, const BatchShape& shape, std::uint64_t seed,
          bool changes, RecordObserver* observer);

  bool changes() const { return changes_; }
  // Of step 0, 1, ..., asked for in this order. The one before is given up. Throws PluginError
  // where the model makes batches that its manifest does not declare, or none although it does.
  const Batch& of_step(std::int64_t step);
  // So far, the input of some step had another shape than the first one's.
  bool shapes_differ() const { return shapes_differ_; }

 private:
  std::optional<Batch> make_next(std::int64_t step);
  void check(const Batch& batch) const;
  void name() const;

  Model& model_;
  Owner owner_;
  BatchShape shape_;
  std::uint64_t seed_;
  bool changes_, shapes_differ_ = false;
  RecordObserver* observer_;
  Batch batch_;
  std::vector<std::int64_t> first_shape_;
};

}  // namespace peakbench::worker
