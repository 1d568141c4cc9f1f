#include "worker/plugin_loader.h"

#include <ATen/Version.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "base/errors.h"
#include "base/host_memory.h"
#include "peakbench/nn.h"
#include "planning/worker.h"
#include "worker/fatal_signal.h"

namespace peakbench::worker {
namespace {

// "..., COMMIT_SHA=70d99e99, CUDA_VERSION=13.0, ..."
std::string setting(const std::string& build, const std::string& name) {
  const auto at = build.find(name + "=");
  if (at == std::string::npos) return "";
  const auto begin = at + name.size() + 1;
  return build.substr(begin, build.find_first_of(", \n", begin) - begin);
}

}  // namespace

std::string why_another_libtorch(const std::string& expected, const std::string& build) {
  const auto first = expected.find(' '), second = expected.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const auto git_version = expected.substr(first + 1, second - first - 1);
  const auto cuda = expected.substr(second + 1);
  const auto git_of_loaded = setting(build, "COMMIT_SHA");
  // A build without CUDA does not name a version of it.
  auto cuda_of_loaded = setting(build, "CUDA_VERSION");
  if (cuda_of_loaded.empty()) cuda_of_loaded = planning::kNoCuda;
  const bool same_git = git_of_loaded.empty() || git_of_loaded == git_version;
  if (git_of_loaded.empty() || (same_git && cuda_of_loaded == cuda)) return "";
  return "PyTorch in the environment is torn: its version.py says " + expected.substr(0, first) +
         " (revision " + git_version + ", CUDA " + cuda + "), its libraries are of revision " +
         git_of_loaded + ", CUDA " + cuda_of_loaded +
         ". Install it anew: pip install --force-reinstall torch==" +
         expected.substr(0, expected.find_first_of("+ "));
}

void check_loaded_libtorch() {
  const char* expected = std::getenv(planning::kLibtorchVariable);
  if (expected == nullptr) return;
  if (const auto why = why_another_libtorch(expected, at::show_config()); !why.empty())
    throw ConfigError(why);
}

namespace {

Options to_options(const records::PluginUse& use) {
  std::map<std::string, Options::Value> values;
  for (const auto& [name, value] : use.options.items()) {
    if (value.is_boolean()) {
      values.emplace(name, value.get<bool>());
    } else if (value.is_number_integer()) {
      values.emplace(name, value.get<std::int64_t>());
    } else if (value.is_number()) {
      values.emplace(name, value.get<double>());
    } else if (value.is_string()) {
      values.emplace(name, value.get<std::string>());
    } else {
      throw PluginError(use.path + ": option " + name + " has the value " + value.dump() +
                        ", which is no boolean, number or text");
    }
  }
  return Options(std::move(values));
}

struct OpenPlugin {
  const PluginEntry& code;
  planning::Plugin manifest;
};

OpenPlugin open_plugin(const records::PluginUse& use) {
  planning::Plugin plugin = planning::read_plugin(use.path);
  if (const auto mismatches = planning::compare(plugin.stamp, planning::own_stamp());
      !mismatches.empty()) {
    std::string message = use.path + ": built for another Peakbench or LibTorch.";
    for (const std::string& mismatch : mismatches) message += "\n  " + mismatch;
    throw PluginError(message + "\nBuild the plugin again against this installation.");
  }
  void* library = ::dlopen(use.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string problem = ::dlerror();
    if (is_of_host(problem)) throw HostError(problem + "; " + no_memory_text(0));
    throw PluginError(use.path + ": cannot be opened: " + problem);
  }
  note_plugin_library(use.path);
  const void* entry = ::dlsym(library, "peakbench_plugin");
  if (entry == nullptr) {
    throw PluginError(use.path + ": has no entry `peakbench_plugin`. A plugin's source ends with " +
                      "PEAKBENCH_STRATEGY_PLUGIN(apply) or PEAKBENCH_MODEL_PLUGIN(make).");
  }
  return {*static_cast<const PluginEntry*>(entry), std::move(plugin)};
}

const planning::Entry& entry_of(const OpenPlugin& plugin, const records::PluginUse& use) {
  for (const planning::Entry& entry : plugin.manifest.entries)
    if (entry.id == use.selection.id) return entry;
  throw PluginError(use.path + ": its manifest has no '" + use.selection.id + "' any more");
}

}  // namespace

Owner owner_of(const records::PluginUse& use) { return {use.path, use.selection.id}; }

LoadedModel make_model(const records::PluginUse& use, const at::TensorOptions& tensor_options) {
  const OpenPlugin plugin = open_plugin(use);
  if (plugin.code.make_model == nullptr)
    throw PluginError(use.path + ": its entry makes no models");
  const Options options = to_options(use);
  auto model = call_plugin(owner_of(use), "make", [&] {
    return plugin.code.make_model({use.selection.id, options, tensor_options});
  });
  if (model == nullptr)
    throw PluginError(use.path + ": made nothing for the id '" + use.selection.id + "'");
  return {std::move(model), entry_of(plugin, use), options};
}

LoadedStrategy load_strategy(const records::PluginUse& use) {
  const OpenPlugin plugin = open_plugin(use);
  if (plugin.code.apply_strategy == nullptr)
    throw PluginError(use.path + ": its entry makes no strategies");
  return {plugin.code.apply_strategy, {use.selection.id, to_options(use)}, entry_of(plugin, use)};
}

void need_options_read(const records::PluginUse& use, const Options& options) {
  for (const auto& [name, value] : use.selection.options.items()) {
    if (options.names_read().contains(name)) continue;
    throw NoEffect(use.selection.id + " has no effect with the option " + name +
                   ": its manifest declares it and its code never read it");
  }
}

namespace {

constexpr const char* kSlot = "base_weights";

bool takes_slot(const records::PluginUse& use) {
  const auto plugin = planning::read_plugin(use.path);
  return std::ranges::any_of(plugin.entries, [&](const planning::Entry& entry) {
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

bool changes_base_weights(const records::Job& job) {
  return std::ranges::any_of(job.strategy_plugins, takes_slot);
}

LoadedModel build_model(const records::Job& job, const at::TensorOptions& options) {
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
