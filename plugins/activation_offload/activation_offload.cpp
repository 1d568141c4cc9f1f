// Activation offloading: what backward needs waits in the host's memory.
#include "copies.h"
#include "overlapped_copies.h"
#include "peakbench/plugin.h"

namespace peakbench::activation_offload {
namespace {

std::shared_ptr<SavedTensorHooks> hooks_of(const StrategyContext& context, Model& model) {
  const Options& options = context.options;
  const bool pin_memory = options.boolean("pin_memory");
  if (context.id == "save-on-cpu") return std::make_shared<SaveOnCpu>(pin_memory);
  const Choice choice{.pin_memory = pin_memory, .min_bytes = options.integer("min_bytes")};
  const std::int64_t overlap = options.integer("overlap");
  if (overlap == 0) return std::make_shared<Copies>(choice);
  const at::Device device = model.module().parameters().front().device();
  if (device.is_cpu())
    throw Unsupported("activation-offload,overlap=" + std::to_string(overlap) +
                      ": the CPU has no stream beside the one that computes; use overlap=0");
  return std::make_shared<OverlappedCopies>(choice, device, overlap);
}

void apply(const StrategyContext& context, Recipe& recipe, Model& model) {
  recipe.saved_tensor_hooks.emplace_back(SavedTensorPlace::kOffload, hooks_of(context, model));
}

}  // namespace
}  // namespace peakbench::activation_offload

PEAKBENCH_STRATEGY_PLUGIN(peakbench::activation_offload::apply)
