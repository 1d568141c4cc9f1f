// Opens plugins and makes what they offer. The manifest and stamp are read first, without running
// plugin code.
#pragma once

#include "peakbench/plugin.h"
#include "result/job.h"

namespace peakbench::worker {

// Throw PluginError with the plugin's path: a stamp that differs, a library that cannot be opened,
// a missing entry, one that makes nothing, or what the plugin's own code threw. What a plugin says
// of the case (Unsupported, OptionError) and LibTorch's errors pass as they are. Libraries stay
// open for the life of the process.
std::unique_ptr<Model> make_model(const result::PluginUse& use,
                                  const at::TensorOptions& tensor_options);
// Makes the strategy and lets it fill the recipe.
void apply_strategy(const result::PluginUse& use, Recipe& recipe, Model& model);

}  // namespace peakbench::worker
