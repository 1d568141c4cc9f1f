#include "launch/plugin_builds.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "launch/content_hash.h"

namespace peakbench::launch {
namespace {

void add(const char* kind, const result::PluginUse& use, std::vector<result::PluginBuild>& builds) {
  if (use.path.empty()) return;
  builds.push_back({kind, use.selection.id, std::filesystem::path(use.path).filename().string(),
                    content_hash(use.path)});
}

}  // namespace

std::vector<result::PluginBuild> plugin_builds(const plan::PlannedCase& planned) {
  std::vector<result::PluginBuild> builds;
  add("model", planned.model, builds);
  for (const auto& use : planned.strategies) add("strategy", use, builds);
  return builds;
}

std::string other_builds(const std::vector<result::PluginBuild>& then,
                         const std::vector<result::PluginBuild>& now) {
  const auto changes = result::changed_plugins(then, now);
  if (changes.empty()) return "";
  const auto& first = changes.front();
  std::set<std::string> files;
  for (const auto& change : changes) files.insert(change.file);
  auto text = fmt::format("{} is another build (sha256 {} then, {} now)", first.file,
                          result::short_hash(first.before), result::short_hash(first.now));
  if (files.size() > 1) text += fmt::format(", and {} more plugins are", files.size() - 1);
  return text;
}

std::string replaced_since(const std::vector<result::PluginBuild>& then,
                           const plan::PlannedCase& planned) {
  const auto what = other_builds(then, plugin_builds(planned));
  return what.empty() ? "" : fmt::format("a plugin was replaced while the case ran: {}", what);
}

}  // namespace peakbench::launch
