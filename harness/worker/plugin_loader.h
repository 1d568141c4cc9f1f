#pragma once

#include <torch/nn/module.h>

#include <string>

#include "peakbench/plugin.h"
#include "planning/manifest.h"
#include "records/job.h"
#include "worker/plugin_call.h"

namespace peakbench::worker {

// The LibTorch that was loaded against the one that the launcher found and puts into the record.

// Why the loaded LibTorch is another one; else empty. `expected`: version.py's data of the folder,
// as planning::libtorch_text writes it. `build`: at::show_config() of the loaded one; facts that it
// lacks are not compared.
std::string why_another_libtorch(const std::string& expected, const std::string& build);

// Throws ConfigError if the loaded LibTorch is not the one that the launcher named
// ($PEAKBENCH_WORKER_LIBTORCH), for example in a partly updated installation. Call it after a
// device was made, because asking LibTorch opens the device.
void check_loaded_libtorch();

// Opens plugins and gives what they offer. The manifest and stamp are read first, without running
// plugin code.

Owner owner_of(const records::PluginUse& use);

struct LoadedModel {
  std::unique_ptr<Model> model;
  planning::Entry manifest;
  Options options;  // shares with the plugin's copy which names were read
};

struct LoadedStrategy {
  decltype(PluginEntry::apply_strategy) apply;
  StrategyContext context;  // its options: as above
  planning::Entry manifest;
};

// Throw PluginError with the plugin's path: another stamp, a library that cannot be opened, a
// missing entry, an entry that returns nothing. Throw PluginFailure with the error of the plugin's
// own code. Let Unsupported and OptionError of the plugin pass. Libraries stay open for the life of
// the process.
LoadedModel make_model(const records::PluginUse& use, const at::TensorOptions& tensor_options);
LoadedStrategy load_strategy(const records::PluginUse& use);

// To be asked after the steps. Throws NoEffect where an option that was chosen was never read.
void need_options_read(const records::PluginUse& use, const Options& options);

// Models whose linear weights are made one by one, where a strategy changes the base weights
// (nn::WeightsOnDemand): they are never all there as they were.

// A strategy of the stack takes the slot `base_weights`, as its manifest says.
bool changes_base_weights(const records::Job& job);

// The job's model: its weights on demand where they are changed. Throws what make_model() does.
LoadedModel build_model(const records::Job& job, const at::TensorOptions& options);

// How a model got its base weights: "layer by layer", or "whole model first" if its linear layers
// do not wait for their weights.
std::string way_of_building(torch::nn::Module& model);

// Makes what the strategy left, the output head for example. Throws PluginError where a tensor of
// the model has no memory then: the strategy took a weight that it had not asked to be made.
void make_waiting_weights(torch::nn::Module& model);

}  // namespace peakbench::worker
