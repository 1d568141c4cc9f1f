#include "offered.h"

#include <dlfcn.h>

#include <ostream>
#include <stdexcept>

namespace peakbench::test {
namespace {

Options::Value value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

}  // namespace

const PluginEntry& Offered::code() const {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return *static_cast<const PluginEntry*>(::dlsym(library, "peakbench_plugin"));
}

Options Offered::options(const Values& given) const {
  Values values = given;
  for (const auto& option : entry.options)
    values.try_emplace(option.name, value_of(option.default_value));
  return Options(values);
}

void PrintTo(const Offered& offered, std::ostream* out) { *out << offered.entry.id; }

std::vector<Offered> offered(planning::Kind kind) {
  std::vector<Offered> all;
  for (const auto& plugin :
       planning::discover({{PLUGIN_FOLDER, ""}, {EXAMPLE_FOLDER, ""}}, planning::own_stamp())
           .plugins) {
    if (plugin.kind != kind) continue;
    for (const auto& entry : plugin.entries) all.push_back({plugin.path, entry});
  }
  return all;
}

Offered find(planning::Kind kind, const std::string& id) {
  for (const Offered& one : offered(kind)) {
    if (one.entry.id == id) return one;
  }
  throw std::runtime_error("no plugin offers " + id);
}

}  // namespace peakbench::test
