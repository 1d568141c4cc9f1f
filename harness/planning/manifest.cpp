#include "planning/manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "base/printable.h"
#include "host/elf_file.h"
#include "planning/read_manifest.h"

namespace peakbench::planning {

Stamp own_stamp() {
  return {.sdk_revision = kSdkRevision,
          .libtorch_version = kLibTorchVersion,
          .libtorch_git_version = kLibTorchGitVersion,
          .libtorch_cuda = kLibTorchCuda,
          .cxx_abi = kCxxAbi};
}

std::vector<std::string> compare(const Stamp& plugin, const Stamp& own) {
  std::vector<std::string> mismatches;
  const auto check = [&](const char* field, const auto& theirs, const auto& ours) {
    if (theirs == ours) return;
    mismatches.push_back(
        fmt::format("{}: plugin has {}, this Peakbench needs {}", field, theirs, ours));
  };
  check("sdk_revision", plugin.sdk_revision, own.sdk_revision);
  check("libtorch_version", plugin.libtorch_version, own.libtorch_version);
  check("libtorch_git_version", plugin.libtorch_git_version, own.libtorch_git_version);
  check("libtorch_cuda", plugin.libtorch_cuda, own.libtorch_cuda);
  check("cxx_abi", plugin.cxx_abi, own.cxx_abi);
  return mismatches;
}

namespace {

using nlohmann::json;

Stamp read_stamp(const Fields& fields) {
  constexpr Range<std::int64_t> kRevisions{0, 1'000'000};
  return {.sdk_revision = static_cast<int>(fields.get("sdk_revision", kRevisions)),
          .libtorch_version = fields.get<std::string>("libtorch_version"),
          .libtorch_git_version = fields.get<std::string>("libtorch_git_version"),
          .libtorch_cuda = fields.get<std::string>("libtorch_cuda"),
          .cxx_abi = fields.get<std::string>("cxx_abi")};
}

// What a manifest may say belongs to the SDK's revision, so another revision's is not judged by our
// rules.
void need_revision(const Stamp& stamp) {
  if (stamp.sdk_revision == kSdkRevision) return;
  throw PluginError(fmt::format("built for another Peakbench: {}; rebuild it",
                                fmt::join(compare(stamp, own_stamp()), "; ")));
}

Plugin read_content(const std::string& text, Problems& problems) {
  const json content = parse_manifest(text, problems);
  if (!problems.empty()) return {};
  const Fields fields(content);
  Plugin plugin;
  plugin.stamp = read_stamp(fields.child("stamp"));
  need_revision(plugin.stamp);
  problems.check_keys(fields, {"stamp", "manifest"});
  auto manifest = read_manifest(fields.child("manifest"), problems);
  plugin.kind = manifest.kind;
  plugin.entries = std::move(manifest.entries);
  return plugin;
}

std::string in_one_line(std::vector<std::string> problems) {
  constexpr std::size_t kMost = 20;
  const auto count = problems.size();
  problems.resize(std::min(count, kMost));
  const auto line = fmt::format("{}", fmt::join(problems, "; "));
  return count > kMost ? fmt::format("{}; and {} more", line, count - kMost) : line;
}

// Throws PluginError where the manifest is another revision's or no manifest at all.
Plugin read_whole(const std::string& text) {
  Problems problems;
  Plugin plugin;
  problems.check([&] { plugin = read_content(text, problems); });
  if (problems.empty()) return plugin;
  throw PluginError(fmt::format("broken manifest: {}", in_one_line(problems.take())));
}

std::string text_in_section(const elf::ElfFile& library) {
  if (!library.is_shared_library()) throw PluginError("an ELF file, but not a shared library");
  if (!library.has_sections())
    throw PluginError("has no section headers; was it stripped of them?");
  if (auto text = library.section(kSection)) return *text;
  throw PluginError(fmt::format(
      "not a Peakbench plugin: it has no section {}; build it with peakbench_add_plugin",
      kSection));
}

std::string text_in_library(const std::string& path) {
  try {
    return text_in_section(elf::ElfFile(path));
  } catch (const elf::NoElf&) {
    throw PluginError("not a shared library (no ELF header)");
  } catch (const elf::ElfError& error) {
    throw PluginError(error.what());
  }
}

}  // namespace

Plugin read_plugin(const std::string& path) {
  try {
    Plugin plugin = read_whole(text_in_library(path));
    plugin.path = path;
    return plugin;
  } catch (const PluginError& error) {
    throw PluginError(fmt::format("{}: {}", path, error.what()));
  }
}

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

}  // namespace peakbench::planning
