#include "plugin_under_test.h"

#include <dlfcn.h>

#include <fstream>
#include <stdexcept>

#include "peakbench/plugin.h"

namespace peakbench::test {
namespace {

Options::Value value_of(const nlohmann::json& option, const std::string* text) {
  const std::string type = option.at("type");
  const nlohmann::json& preset = option.at("default");
  if (type == "integer") return text ? std::stoll(*text) : preset.get<std::int64_t>();
  if (type == "number") return text ? std::stod(*text) : preset.get<double>();
  if (type == "boolean") return text ? *text == "true" : preset.get<bool>();
  return text ? *text : preset.get<std::string>();
}

}  // namespace

PluginUnderTest::PluginUnderTest(const std::filesystem::path& library,
                                 const std::filesystem::path& manifest)
    : manifest_(nlohmann::json::parse(std::ifstream(manifest))) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(::dlerror());
  const auto* entry = static_cast<const PluginEntry*>(::dlsym(handle, "peakbench_plugin"));
  if (!entry || !entry->make_model) {
    throw std::runtime_error(library.string() + ": no entry that makes models");
  }
  make_model_ = entry->make_model;
}

const nlohmann::json& PluginUnderTest::entry(const std::string& id) const {
  for (const nlohmann::json& entry : manifest_.at("entries")) {
    if (entry.at("id") == id) return entry;
  }
  throw std::runtime_error("the manifest has no model '" + id + "'");
}

Options PluginUnderTest::options(const std::string& id,
                                 const std::map<std::string, std::string>& given) const {
  std::map<std::string, Options::Value> values;
  for (const nlohmann::json& option : entry(id).at("options")) {
    const std::string name = option.at("name");
    const auto found = given.find(name);
    values.emplace(name, value_of(option, found == given.end() ? nullptr : &found->second));
  }
  for (const auto& [name, text] : given) {
    if (!values.contains(name)) throw std::runtime_error("no option '" + name + "' of " + id);
  }
  return Options(std::move(values));
}

std::unique_ptr<Model> PluginUnderTest::make(const ModelContext& context) const {
  return make_model_(context);
}

}  // namespace peakbench::test
