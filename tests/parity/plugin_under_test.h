// A model's plugin opened without the worker: its manifest from the source tree, its library from
// the build tree.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "peakbench/model.h"
#include "peakbench/options.h"

namespace peakbench::test {

class PluginUnderTest {
 public:
  // Throws std::runtime_error when the library cannot be opened or has no entry. It stays open.
  PluginUnderTest(const std::filesystem::path& library, const std::filesystem::path& manifest);

  const nlohmann::json& manifest() const { return manifest_; }
  // Throws std::runtime_error for an id the manifest does not have.
  const nlohmann::json& entry(const std::string& id) const;
  // The defaults of the manifest with `given` over them. Throws std::runtime_error for a name the
  // manifest does not have.
  Options options(const std::string& id, const std::map<std::string, std::string>& given) const;
  std::unique_ptr<Model> make(const ModelContext& context) const;

 private:
  nlohmann::json manifest_;
  std::unique_ptr<Model> (*make_model_)(const ModelContext&) = nullptr;
};

}  // namespace peakbench::test
