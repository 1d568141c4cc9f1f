// How the code of models and strategies tells the tracer where it is. In a throughput worker nobody
// listens: each scope is then one load and a branch.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace torch::nn {
class Module;
}

namespace peakbench {

// What a storage is for, where the allocation's lifetime alone cannot tell: its category in
// reports. kKept: what a strategy keeps for itself.
enum class StorageRole { kParameter, kBuffer, kGradient, kOptimizerState, kInput, kKept };

// Follows the modules whose forward runs.
class ModuleObserver {
 public:
  virtual ~ModuleObserver() = default;
  virtual void enter_module(const torch::nn::Module& module) = 0;
  virtual void exit_module() = 0;
};

// Implemented by the worker. Called on whichever thread runs the code, never concurrently for one
// tensor.
class Observer : public ModuleObserver {
 public:
  virtual void enter_update() = 0;  // a parameter update, also inside backward
  virtual void exit_update() = 0;
  virtual void enter_recompute() = 0;  // a checkpointed block runs again
  virtual void exit_recompute() = 0;
  // Names the allocation that now backs `tensor`. The name binds to that allocation, not to its
  // address, and the first one stays. For memory that one call makes and gives up again; what is
  // held between calls is shown by HoldsMemory::visit_memory.
  virtual void name_storage(const at::Tensor& tensor, StorageRole role,
                            const std::string& name) = 0;
};

Observer* observer();                   // nullptr where nothing is traced
void set_observer(Observer* observer);  // the worker's, once, before any model is built

// The observer, or what the worker has set to follow modules without one; nullptr: nobody.
ModuleObserver* module_observer();
void set_module_observer(ModuleObserver* observer);

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
