#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "errors/errors.h"
#include "files/file.h"
#include "manifest/manifest.h"
#include "text/utf8.h"

namespace peakbench::manifest {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> libraries_below(const Folder& named) {
  const auto& folder = named.path;
  std::error_code error;
  if (const auto why = files::why_hidden(folder); !why.empty())
    throw ConfigError(fmt::format("{}: the plugin folder cannot be read: {}", folder, why));
  if (!fs::is_directory(folder, error)) {
    throw ConfigError(fmt::format(
        "{}: no such plugin folder (named by {}); build the plugins, or name another folder there",
        folder, named.named_by));
  }
  std::vector<std::string> paths;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto item = fs::recursive_directory_iterator(folder, options, error);
       !error && item != fs::recursive_directory_iterator(); item.increment(error)) {
    if (item->path().extension() == ".so") paths.push_back(item->path().string());
  }
  if (error)
    throw ConfigError(fmt::format("{}: cannot read the folder: {}", folder, error.message()));
  if (paths.empty()) {
    throw ConfigError(
        fmt::format("{}: the folder holds no plugin (*.so; named by {}); build the plugins, or "
                    "name another folder there",
                    folder, named.named_by));
  }
  std::ranges::sort(paths);
  return paths;
}

// Ids are unique within a kind; the library that was found first keeps one.
class Collection {
 public:
  explicit Collection(const Stamp& needed) : needed_(needed) {}

  void add(const std::string& path) {
    std::error_code ignored;
    const auto real = fs::weakly_canonical(path, ignored);
    if (!seen_.insert(ignored ? path : real.string()).second) return;
    try {
      if (!is_utf8(path))
        throw PluginError(
            fmt::format("{}: its path is not UTF-8: jobs are JSON, which holds nothing else; "
                        "rename it",
                        escaped_bytes(path)));
      add(read_plugin(path));
    } catch (const PluginError& error) {
      found_.problems.push_back(error.what());
    } catch (const std::exception& error) {  // whatever is in one file, the others work
      found_.problems.push_back(fmt::format("{}: cannot be read: {}", path, error.what()));
    }
  }

  Found take() { return std::move(found_); }

 private:
  void add(Plugin plugin) {
    const auto mismatches = compare(plugin.stamp, needed_);
    if (!mismatches.empty()) {
      throw PluginError(fmt::format("{}: built for another Peakbench or LibTorch: {}; rebuild it",
                                    plugin.path, fmt::join(mismatches, "; ")));
    }
    auto& owners = owners_[plugin.kind];
    for (const auto& entry : plugin.entries) {
      const auto owner = owners.find(entry.id);
      if (owner == owners.end()) continue;
      throw PluginError(
          fmt::format("{}: offers \"{}\", which {} offers already; remove one of them", plugin.path,
                      entry.id, owner->second));
    }
    for (const auto& entry : plugin.entries) owners[entry.id] = plugin.path;
    found_.plugins.push_back(std::move(plugin));
  }

  const Stamp& needed_;
  Found found_;
  std::set<std::string> seen_;
  std::map<Kind, std::map<std::string, std::string>> owners_;
};

}  // namespace

Found discover(const std::vector<Folder>& folders, const Stamp& needed) {
  Collection collection(needed);
  for (const auto& folder : folders) {
    for (const auto& path : libraries_below(folder)) collection.add(path);
  }
  return collection.take();
}

}  // namespace peakbench::manifest
