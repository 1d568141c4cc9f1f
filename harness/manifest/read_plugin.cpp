#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "elf/elf_file.h"
#include "errors/errors.h"
#include "json/fields.h"
#include "manifest/manifest.h"
#include "manifest/read_manifest.h"

namespace peakbench::manifest {
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

}  // namespace peakbench::manifest
