// Memory that a part of a recipe holds from one call to the next, told by its name. What reports
// say of it is then the strategy's, and no guess from its lifetime.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

#include "peakbench/observer.h"

namespace peakbench {

// `name`: what it is, as `encoder.ln.weight.copy`; reports have the strategy's id before it.
// `role`: its category in reports: kOptimizerState (what the update needs from step to step),
// kGradient (gradients that wait elsewhere), kKept (whatever else a strategy keeps for itself).
using MemoryVisitor =
    std::function<void(const std::string& name, const at::Tensor& tensor, StorageRole role)>;

// What a strategy puts into a recipe may hold memory.
class HoldsMemory {
 public:
  virtual ~HoldsMemory() = default;
  // Shows every tensor that this holds now and that nothing else names: parameters, their
  // gradients and the state that UpdateRule::visit_state shows have their names already. Asked when
  // a phase ends, after each step and where memory ran out, between calls; not where nothing is
  // traced. Undefined tensors are passed over. Makes no tensor.
  virtual void visit_memory(const MemoryVisitor& visit) {}
};

}  // namespace peakbench
