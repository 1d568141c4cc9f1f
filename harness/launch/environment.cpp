#include "launch/environment.h"

#include <map>
#include <optional>
#include <string>

#include "launch/host.h"

namespace peakbench::launch {
namespace {

using nlohmann::json;

// Nullopt: two cases disagree.
std::map<std::string, std::optional<json>> said_by(
    const std::vector<const result::CaseResult*>& cases) {
  std::map<std::string, std::optional<json>> said;
  for (const auto* one : cases) {
    if (!one->environment.is_object()) continue;
    for (const auto& [key, value] : one->environment.items()) {
      const auto [found, is_new] = said.emplace(key, value);
      if (!is_new && found->second && *found->second != value) found->second.reset();
    }
  }
  return said;
}

}  // namespace

nlohmann::json host_environment(const plan::Plan& plan) {
  const auto* worker = plan::only_worker(plan);
  return host_environment(worker != nullptr ? *worker : manifest::no_worker());
}

nlohmann::json run_environment(json run, const json& host,
                               const std::vector<const result::CaseResult*>& cases) {
  for (const auto& [key, value] : said_by(cases)) {
    if (value)
      run[key] = *value;
    else if (host.contains(key))
      run[key] = host.at(key);
    else
      run.erase(key);
  }
  return run;
}

}  // namespace peakbench::launch
