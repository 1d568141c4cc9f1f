#include "worker/plugin_loader.h"

#include <dlfcn.h>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "errors/host_memory.h"
#include "manifest/manifest.h"
#include "worker/fatal_signal.h"
#include "worker/no_effect.h"

namespace peakbench::worker {
namespace {

Options to_options(const result::PluginUse& use) {
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
  manifest::Plugin manifest;
};

OpenPlugin open_plugin(const result::PluginUse& use) {
  manifest::Plugin plugin = manifest::read_plugin(use.path);
  if (const auto mismatches = manifest::compare(plugin.stamp, manifest::own_stamp());
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

const manifest::Entry& entry_of(const OpenPlugin& plugin, const result::PluginUse& use) {
  for (const manifest::Entry& entry : plugin.manifest.entries)
    if (entry.id == use.selection.id) return entry;
  throw PluginError(use.path + ": its manifest has no '" + use.selection.id + "' any more");
}

}  // namespace

Owner owner_of(const result::PluginUse& use) { return {use.path, use.selection.id}; }

LoadedModel make_model(const result::PluginUse& use, const at::TensorOptions& tensor_options) {
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

LoadedStrategy load_strategy(const result::PluginUse& use) {
  const OpenPlugin plugin = open_plugin(use);
  if (plugin.code.apply_strategy == nullptr)
    throw PluginError(use.path + ": its entry makes no strategies");
  return {plugin.code.apply_strategy, {use.selection.id, to_options(use)}, entry_of(plugin, use)};
}

void need_options_read(const result::PluginUse& use, const Options& options) {
  for (const auto& [name, value] : use.selection.options.items()) {
    if (options.names_read().contains(name)) continue;
    throw NoEffect(use.selection.id + " has no effect with the option " + name +
                   ": its manifest declares it and its code never read it");
  }
}

}  // namespace peakbench::worker
