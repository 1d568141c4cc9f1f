#include "launch/plugin_builds.h"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "files/file.h"
#include "launch/content_hash.h"

namespace peakbench::launch {
namespace {

void add(const char* kind, const result::PluginUse& use, std::vector<result::PluginBuild>& builds) {
  if (use.path.empty()) return;
  builds.push_back({kind, use.selection.id, std::filesystem::path(use.path).filename().string(),
                    content_hash(use.path)});
}

// The scripts that a command names. What they import is not looked for.
void add_scripts(const result::ProgramCommand& program, std::vector<result::PluginBuild>& builds) {
  for (const auto& word : program.arguments) {
    const bool is_script = word.ends_with(".py") || word.ends_with(".sh") ||
                           (&word == &program.arguments.front() && word.find('/') != 0 &&
                            word.find('/') != std::string::npos);
    const auto path = (std::filesystem::path(program.folder) / word).string();
    if (is_script && files::why_no_file(path).empty() && files::is_there(path))
      builds.push_back({result::kScript, word, std::filesystem::path(word).filename().string(),
                        content_hash(path)});
  }
}

}  // namespace

std::vector<result::PluginBuild> plugin_builds(const plan::PlannedCase& planned) {
  std::vector<result::PluginBuild> builds;
  add("model", planned.model, builds);
  for (const auto& use : planned.strategies) add("strategy", use, builds);
  if (planned.program) add_scripts(*planned.program, builds);
  return builds;
}

std::string other_builds(const std::vector<result::PluginBuild>& then,
                         const std::vector<result::PluginBuild>& now) {
  const auto changes = result::changed_plugins(then, now);
  if (changes.empty()) return "";
  const auto& first = changes.front();
  std::set<std::string> files;
  for (const auto& change : changes) files.insert(change.file);
  const bool is_script = first.kind == result::kScript;
  auto text = fmt::format("{} {} (sha256 {} then, {} now)", first.file,
                          is_script ? "has changed" : "is another build",
                          result::short_hash(first.before), result::short_hash(first.now));
  if (files.size() > 1)
    text += fmt::format(", and {} more {}", files.size() - 1,
                        is_script ? "scripts have" : "plugins are");
  return text;
}

std::string replaced_since(const std::vector<result::PluginBuild>& then,
                           const plan::PlannedCase& planned) {
  const auto what = other_builds(then, plugin_builds(planned));
  if (what.empty()) return "";
  return fmt::format("{} while the case ran: {}",
                     planned.program ? "a script was changed" : "a plugin was replaced", what);
}

}  // namespace peakbench::launch
