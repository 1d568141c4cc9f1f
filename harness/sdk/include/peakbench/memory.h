// Parts of a recipe report the memory that they hold between calls. Reports then show it under the
// strategy's id, and its category is not guessed from its lifetime.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "peakbench/observer.h"

namespace peakbench {

// Receives one tensor that a part of a recipe holds.
// - `name` says what the tensor is, for example `encoder.ln.weight.copy`. Reports put the
//   strategy's id before it.
// - `role` is its category in reports:
//   - kOptimizerState: data that the update needs from step to step.
//   - kGradient: gradients that are stored elsewhere until they are used.
//   - kKept: anything else that a strategy keeps.
using MemoryVisitor =
    std::function<void(const std::string& name, const at::Tensor& tensor, StorageRole role)>;

// The base class of the objects that a strategy puts into a recipe, since each may hold memory.
class HoldsMemory {
 public:
  virtual ~HoldsMemory() = default;
  // Passes to `visit` every tensor that this object holds now and that has no name yet.
  // - Parameters, their gradients and the state shown by UpdateRule::visit_state have names
  //   already.
  // - If memory is traced, the worker calls this when a phase ends, after each step, and when
  //   memory runs out.
  // - No other call into the object runs at that time, except StepRunner::run, whose passes end
  //   phases.
  // - `visit` ignores undefined tensors.
  // - The function must not create tensors.
  virtual void visit_memory(const MemoryVisitor& visit) {}
};

}  // namespace peakbench
