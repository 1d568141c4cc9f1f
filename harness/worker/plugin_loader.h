// Opens plugins and makes what they offer. The manifest and stamp are read first, without running
// plugin code.
#pragma once

#include "peakbench/plugin.h"
#include "result/job.h"

namespace peakbench::worker {

// Throw PluginError with the plugin's path: a stamp that differs, a library that cannot be opened,
// a missing entry, or one that makes nothing. Libraries stay open for the life of the process.
std::unique_ptr<Model> make_model(const result::PluginUse& use,
                                  const at::TensorOptions& tensor_options);
std::unique_ptr<Strategy> make_strategy(const result::PluginUse& use);

}  // namespace peakbench::worker
