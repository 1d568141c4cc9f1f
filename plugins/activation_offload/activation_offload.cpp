// Activation offloading: what backward needs waits in the host's memory.
#include "copies.h"
#include "overlapped_copies.h"
#include "peakbench/plugin.h"

namespace peakbench::activation_offload {
namespace {

at::Device device_of(Model& model) { return model.module().parameters().front().device(); }

class ActivationOffload : public Strategy {
 public:
  explicit ActivationOffload(const Options& options)
      : choice_{.pin_memory = options.boolean("pin_memory"),
                .min_bytes = options.integer("min_bytes")},
        overlap_(options.integer("overlap")) {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload, hooks(device_of(model)));
  }

 private:
  std::shared_ptr<SavedTensorHooks> hooks(at::Device device) const {
    if (overlap_ == 0) return std::make_shared<Copies>(choice_);
    if (device.is_cpu())
      throw Unsupported("activation-offload,overlap=" + std::to_string(overlap_) +
                        ": the CPU has no stream beside the one that computes; use overlap=0");
    return std::make_shared<OverlappedCopies>(choice_, device, overlap_);
  }

  Choice choice_;
  std::int64_t overlap_;
};

class SaveOnCpuStrategy : public Strategy {
 public:
  explicit SaveOnCpuStrategy(const Options& options) : pin_memory_(options.boolean("pin_memory")) {}

  void apply(Recipe& recipe, Model& model) override {
    recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload,
                                           std::make_shared<SaveOnCpu>(pin_memory_));
  }

 private:
  bool pin_memory_;
};

std::unique_ptr<Strategy> make(const StrategyContext& context) {
  if (context.id == "save-on-cpu") return std::make_unique<SaveOnCpuStrategy>(context.options);
  return std::make_unique<ActivationOffload>(context.options);
}

}  // namespace
}  // namespace peakbench::activation_offload

PEAKBENCH_STRATEGY_PLUGIN(peakbench::activation_offload::make)
