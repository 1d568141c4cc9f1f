// Models whose linear weights are made one by one, where a strategy changes the base weights
// (nn::WeightsOnDemand): they are never all there as they were.
#pragma once

#include <torch/nn/module.h>

#include <string>

#include "result/job.h"
#include "worker/plugin_loader.h"

namespace peakbench::worker {

// A strategy of the stack takes the slot `base_weights`, as its manifest says.
bool changes_base_weights(const result::Job& job);

// The job's model: its weights on demand where they are changed. Throws what make_model() does.
LoadedModel build_model(const result::Job& job, const at::TensorOptions& options);

// How a model came to its base weights, for people: "layer by layer", or "whole model first" where
// its linear layers do not wait for their weights.
std::string way_of_building(torch::nn::Module& model);

// Makes what the strategy left, the output head for example. Throws PluginError where a tensor of
// the model has no memory then: the strategy took a weight that it had not asked to be made.
void make_waiting_weights(torch::nn::Module& model);

}  // namespace peakbench::worker
