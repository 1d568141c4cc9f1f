#include "worker/weights_on_demand.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "errors/errors.h"
#include "manifest/manifest.h"
#include "peakbench/nn.h"

namespace peakbench::worker {
namespace {

constexpr const char* kSlot = "base_weights";

bool takes_slot(const result::PluginUse& use) {
  const auto plugin = manifest::read_plugin(use.path);
  return std::ranges::any_of(plugin.entries, [&](const manifest::Entry& entry) {
    return entry.id == use.selection.id && std::ranges::count(entry.slots, kSlot) > 0;
  });
}

std::vector<nn::LinearLayer*> waiting_layers(torch::nn::Module& model) {
  std::vector<nn::LinearLayer*> layers;
  for (const auto& module : model.modules(/*include_self=*/false))
    if (auto* layer = dynamic_cast<nn::LinearLayer*>(module.get());
        layer != nullptr && layer->has_waiting_weight())
      layers.push_back(layer);
  return layers;
}

void need_memory(const std::string& name, const at::Tensor& tensor) {
  if (tensor.defined() && tensor.is_meta())
    throw PluginError("after the base weights were changed, " + name +
                      " has no memory. A linear layer's weight may not be made yet when a "
                      "strategy changes it: ask for dense_weight(), or call make_weight() first");
}

}  // namespace

bool changes_base_weights(const result::Job& job) {
  return std::ranges::any_of(job.strategy_plugins, takes_slot);
}

LoadedModel build_model(const result::Job& job, const at::TensorOptions& options) {
  std::optional<nn::WeightsOnDemand> scope;
  if (changes_base_weights(job)) scope.emplace();
  return make_model(job.model_plugin, options);
}

std::string way_of_building(torch::nn::Module& model) {
  return waiting_layers(model).empty() ? "whole model first" : "layer by layer";
}

void make_waiting_weights(torch::nn::Module& model) {
  for (auto* layer : waiting_layers(model)) layer->make_weight();
  for (const auto& item : model.named_parameters()) need_memory(item.key(), item.value());
  for (const auto& item : model.named_buffers()) need_memory(item.key(), item.value());
}

}  // namespace peakbench::worker
