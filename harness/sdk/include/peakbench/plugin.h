// The one symbol a plugin exports. Everything else it says of itself is in its manifest
// (plugin.json), which is read without running its code.
//
//   void apply(const StrategyContext& context, Recipe& recipe, Model& model) { ... }
//   PEAKBENCH_STRATEGY_PLUGIN(apply)
#pragma once

#include <memory>

#include "peakbench/strategy.h"

namespace peakbench {

inline constexpr int kSdkRevision = 6;  // compared exactly

struct PluginEntry {
  int sdk_revision = kSdkRevision;
  std::unique_ptr<Model> (*make_model)(const ModelContext& context) = nullptr;
  void (*apply_strategy)(const StrategyContext& context, Recipe& recipe, Model& model) = nullptr;
};

}  // namespace peakbench

#define PEAKBENCH_EXPORT_ENTRY_(model, strategy)                                                   \
  extern "C" __attribute__((visibility("default"))) const peakbench::PluginEntry peakbench_plugin; \
  const peakbench::PluginEntry peakbench_plugin = {peakbench::kSdkRevision, model, strategy};

#define PEAKBENCH_MODEL_PLUGIN(make_model) PEAKBENCH_EXPORT_ENTRY_(make_model, nullptr)
#define PEAKBENCH_STRATEGY_PLUGIN(apply_strategy) PEAKBENCH_EXPORT_ENTRY_(nullptr, apply_strategy)
