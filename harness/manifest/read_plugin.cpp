#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "manifest/elf_section.h"
#include "manifest/manifest.h"
#include "manifest/read_entry.h"
#include "result/errors.h"
#include "result/fields.h"

namespace peakbench::manifest {
namespace {

using nlohmann::json;
using result::FieldError;
using result::Fields;

Stamp read_stamp(const Fields& fields) {
  return {.sdk_revision = static_cast<int>(fields.get<std::int64_t>("sdk_revision")),
          .libtorch_version = fields.get<std::string>("libtorch_version"),
          .libtorch_git_version = fields.get<std::string>("libtorch_git_version"),
          .libtorch_cuda = fields.get<std::string>("libtorch_cuda"),
          .cxx_abi = fields.get<std::string>("cxx_abi")};
}

Kind read_kind(const Fields& fields) {
  const auto kind = fields.get<std::string>("kind");
  if (kind == "model") return Kind::kModel;
  if (kind == "strategy") return Kind::kStrategy;
  throw FieldError(fields.pointer("kind"), "expected model or strategy, got \"" + kind + "\"");
}

std::vector<Entry> read_entries(const Fields& fields, Kind kind) {
  std::vector<Entry> entries;
  std::set<std::string> ids;
  fields.require("entries");
  fields.each("entries", [&](const Fields& item) {
    entries.push_back(read_entry(item, kind));
    if (!ids.insert(entries.back().id).second) {
      throw FieldError(item.pointer("id"), "\"" + entries.back().id + "\" is there twice");
    }
  });
  if (entries.empty()) throw FieldError(fields.pointer("entries"), "is empty");
  return entries;
}

// What a manifest may say belongs to the SDK's revision, so another revision's is not judged by our
// rules.
void need_revision(const Stamp& stamp) {
  if (stamp.sdk_revision == kSdkRevision) return;
  throw PluginError(fmt::format("built for another Peakbench: {}; rebuild it",
                                fmt::join(compare(stamp, own_stamp()), "; ")));
}

Plugin read_content(const std::string& text) {
  const json content = json::parse(text);
  const Fields fields(content);
  Plugin plugin;
  plugin.stamp = read_stamp(fields.child("stamp"));
  need_revision(plugin.stamp);
  fields.only({"stamp", "manifest"});
  const Fields manifest = fields.child("manifest");
  manifest.only({"kind", "entries"});
  plugin.kind = read_kind(manifest);
  plugin.entries = read_entries(manifest, plugin.kind);
  return plugin;
}

}  // namespace

Plugin read_plugin(const std::string& path) {
  const std::string text = read_elf_section(path, kSection);
  try {
    Plugin plugin = read_content(text);
    plugin.path = path;
    return plugin;
  } catch (const json::parse_error& error) {
    throw PluginError(fmt::format("{}: broken manifest: not JSON (byte {} of section {})", path,
                                  error.byte, kSection));
  } catch (const FieldError& error) {
    throw PluginError(fmt::format("{}: broken manifest: {}", path, error.what()));
  } catch (const PluginError& error) {
    throw PluginError(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace peakbench::manifest
