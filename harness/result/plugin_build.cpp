#include "result/plugin_build.h"

#include <algorithm>

namespace peakbench::result {
namespace {

const PluginBuild* find(const std::vector<PluginBuild>& builds, const PluginBuild& like) {
  const auto at = std::ranges::find_if(
      builds, [&](const PluginBuild& one) { return one.kind == like.kind && one.id == like.id; });
  return at == builds.end() ? nullptr : &*at;
}

}  // namespace

std::string short_hash(const std::string& sha256) {
  constexpr std::size_t kShown = 12;
  return sha256.empty() ? "not known" : sha256.substr(0, kShown);
}

std::vector<PluginChange> changed_plugins(const std::vector<PluginBuild>& before,
                                          const std::vector<PluginBuild>& now) {
  std::vector<PluginChange> changes;
  for (const auto& one : now) {
    const auto* was = find(before, one);
    if (was == nullptr || was->sha256 != one.sha256)
      changes.push_back(
          {one.id, one.file, was == nullptr ? "" : was->sha256, one.sha256, one.kind});
  }
  for (const auto& one : before)
    if (find(now, one) == nullptr) changes.push_back({one.id, one.file, one.sha256, "", one.kind});
  return changes;
}

}  // namespace peakbench::result
