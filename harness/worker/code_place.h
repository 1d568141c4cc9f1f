// Where forward is, for saved-tensor hooks that ask: the module and the operator, with a recorder
// and without one.
#pragma once

#include <ATen/record_function.h>
#include <torch/nn/module.h>

#include <string>
#include <string_view>
#include <unordered_map>

#include "peakbench/observer.h"

namespace peakbench::worker {

// Of this thread. Empty where nothing is followed.
std::string_view current_module();
std::string_view current_operator();

// Follows the modules of a tree, wherever they run, while it lives. Also calls the previous
// observer.
class ModulePaths final : public ModuleObserver {
 public:
  explicit ModulePaths(const torch::nn::Module& root);
  ~ModulePaths() override;
  ModulePaths(const ModulePaths&) = delete;
  ModulePaths& operator=(const ModulePaths&) = delete;

  void enter_module(const torch::nn::Module& module) override;
  void exit_module() override;

 private:
  ModuleObserver* before_;
  std::unordered_map<const torch::nn::Module*, std::string> paths_;
};

// Follows the operators of this thread while it lives.
class FollowOperators {
 public:
  FollowOperators();
  ~FollowOperators();
  FollowOperators(const FollowOperators&) = delete;
  FollowOperators& operator=(const FollowOperators&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace peakbench::worker
