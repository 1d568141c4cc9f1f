// Models and strategies report to the tracer which part of their code runs. A throughput worker
// traces nothing, and each scope then costs one load and one branch.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace torch::nn {
class Module;
}

namespace peakbench {

// The category of a storage in reports, for storages whose lifetime alone does not determine it.
// kKept is data that a strategy keeps for itself.
enum class StorageRole { kParameter, kBuffer, kGradient, kOptimizerState, kInput, kKept };

// A module observer is notified when the forward of a module begins and ends.
class ModuleObserver {
 public:
  virtual ~ModuleObserver() = default;
  virtual void enter_module(const torch::nn::Module& module) = 0;
  virtual void exit_module() = 0;
};

// The worker implements the observer. Its functions are called on the thread that runs the code,
// and never concurrently for one tensor.
class Observer : public ModuleObserver {
 public:
  // enter_update and exit_update mark the beginning and the end of a parameter update, also inside
  // backward.
  virtual void enter_update() = 0;
  virtual void exit_update() = 0;
  // enter_recompute and exit_recompute mark the beginning and the end of a second run of a
  // checkpointed block.
  virtual void enter_recompute() = 0;
  virtual void exit_recompute() = 0;
  // Names the allocation that now backs `tensor`. The name belongs to the allocation, not to its
  // address. The first name of an allocation stays. Use it for memory that one call creates and
  // frees. HoldsMemory::visit_memory shows memory that is held between calls.
  virtual void name_storage(const at::Tensor& tensor, StorageRole role,
                            const std::string& name) = 0;
};

// Returns the observer, or nullptr if nothing is traced.
Observer* observer();
// Sets the observer, also as the module observer. The worker calls it once, before any model is
// built.
void set_observer(Observer* observer);

// Returns the module observer, or nullptr if there is none. It is the observer, unless the worker
// has set another one, for example to follow modules without tracing.
ModuleObserver* module_observer();
void set_module_observer(ModuleObserver* observer);

// Marks the forward of a module while the scope lives.
class ModuleScope {
 public:
  explicit ModuleScope(const torch::nn::Module& module) : observer_(module_observer()) {
    if (observer_) observer_->enter_module(module);
  }
  ~ModuleScope() {
    if (observer_) observer_->exit_module();
  }
  ModuleScope(const ModuleScope&) = delete;
  ModuleScope& operator=(const ModuleScope&) = delete;

 private:
  ModuleObserver* observer_;
};

// Marks a parameter update while the scope lives.
class UpdateScope {
 public:
  UpdateScope() : observer_(observer()) {
    if (observer_) observer_->enter_update();
  }
  ~UpdateScope() {
    if (observer_) observer_->exit_update();
  }
  UpdateScope(const UpdateScope&) = delete;
  UpdateScope& operator=(const UpdateScope&) = delete;

 private:
  Observer* observer_;
};

// Marks a second run of a checkpointed block while the scope lives.
class RecomputeScope {
 public:
  RecomputeScope() : observer_(observer()) {
    if (observer_) observer_->enter_recompute();
  }
  ~RecomputeScope() {
    if (observer_) observer_->exit_recompute();
  }
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

 private:
  Observer* observer_;
};

}  // namespace peakbench
