// Opens plugins and gives what they offer. The manifest and stamp are read first, without running
// plugin code.
#pragma once

#include "manifest/manifest.h"
#include "peakbench/plugin.h"
#include "result/job.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

Owner owner_of(const result::PluginUse& use);

struct LoadedModel {
  std::unique_ptr<Model> model;
  manifest::Entry manifest;
  Options options;  // shares with the plugin's copy which names were read
};

struct LoadedStrategy {
  decltype(PluginEntry::apply_strategy) apply;
  StrategyContext context;  // its options: as above
  manifest::Entry manifest;
};

// Throw PluginError with the plugin's path: a stamp that differs, a library that cannot be opened,
// a missing entry, one that makes nothing; PluginFailure with what the plugin's own code threw.
// What a plugin says of the case (Unsupported, OptionError) passes as it is. Libraries stay open
// for the life of the process.
LoadedModel make_model(const result::PluginUse& use, const at::TensorOptions& tensor_options);
LoadedStrategy load_strategy(const result::PluginUse& use);

// To be asked after the steps. Throws NoEffect where an option that was chosen was never read.
void need_options_read(const result::PluginUse& use, const Options& options);

}  // namespace peakbench::worker
