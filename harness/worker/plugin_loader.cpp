#include "worker/plugin_loader.h"

#include <dlfcn.h>

#include "manifest/manifest.h"
#include "result/errors.h"

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

const PluginEntry& open_plugin(const result::PluginUse& use) {
  const manifest::Plugin plugin = manifest::read_plugin(use.path);
  if (const auto mismatches = manifest::compare(plugin.stamp, manifest::own_stamp());
      !mismatches.empty()) {
    std::string message = use.path + ": built for another Peakbench or LibTorch.";
    for (const std::string& mismatch : mismatches) message += "\n  " + mismatch;
    throw PluginError(message + "\nBuild the plugin again against this installation.");
  }
  void* library = ::dlopen(use.path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw PluginError(use.path + ": cannot be opened: " + ::dlerror());
  const void* entry = ::dlsym(library, "peakbench_plugin");
  if (entry == nullptr) {
    throw PluginError(use.path + ": has no entry `peakbench_plugin`. A plugin's source ends with " +
                      "PEAKBENCH_STRATEGY_PLUGIN(make) or PEAKBENCH_MODEL_PLUGIN(make).");
  }
  return *static_cast<const PluginEntry*>(entry);
}

template <typename Made>
Made checked(Made made, const result::PluginUse& use) {
  if (made == nullptr)
    throw PluginError(use.path + ": made nothing for the id '" + use.selection.id + "'");
  return made;
}

template <typename Call>
auto call_plugin(const result::PluginUse& use, Call call) {
  try {
    return call();
  } catch (const Unsupported&) {
    throw;
  } catch (const OptionError&) {
    throw;
  } catch (const PluginError&) {
    throw;
  } catch (const c10::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw PluginError(use.path + ": '" + use.selection.id + "' threw: " + error.what());
  }
}

}  // namespace

std::unique_ptr<Model> make_model(const result::PluginUse& use,
                                  const at::TensorOptions& tensor_options) {
  const PluginEntry& entry = open_plugin(use);
  if (entry.make_model == nullptr) throw PluginError(use.path + ": its entry makes no models");
  return call_plugin(use, [&] {
    return checked(entry.make_model({use.selection.id, to_options(use), tensor_options}), use);
  });
}

void apply_strategy(const result::PluginUse& use, Recipe& recipe, Model& model) {
  const PluginEntry& entry = open_plugin(use);
  if (entry.make_strategy == nullptr)
    throw PluginError(use.path + ": its entry makes no strategies");
  call_plugin(use, [&] {
    checked(entry.make_strategy({use.selection.id, to_options(use)}), use)->apply(recipe, model);
  });
}

}  // namespace peakbench::worker
