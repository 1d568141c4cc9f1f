#include "reports/site/folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "json/fields.h"

namespace peakbench::site {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// A manifest may have been edited: nothing outside the folder is ever touched.
bool is_inside(const std::string& name) {
  const fs::path path(name);
  if (name.empty() || path.is_absolute()) return false;
  for (const auto& part : path)
    if (part == "..") return false;
  return true;
}

Names read_manifest(const fs::path& folder) {
  const auto path = folder / kManifest;
  if (!files::is_there(path.string())) return {};
  const auto json = files::read_json_file(path.string());
  try {
    const auto files = Fields(json).get<std::vector<std::string>>("files");
    Names names;
    for (const auto& name : files)
      if (is_inside(name)) names.insert(name);
    return names;
  } catch (const RunFileError& error) {
    throw ConfigError(
        fmt::format("{}: {}; delete it, and the pages beside it, to publish into this folder anew",
                    path.string(), error.what()));
  }
}

std::string manifest_text(const Names& names) {
  const nlohmann::ordered_json json{
      {"about", "Files that `peakbench publish` wrote here, and may replace or remove"},
      {"files", names}};
  return json.dump(1) + "\n";
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A site can be made again: nothing waits for the disk.
void write_file(const fs::path& path, const std::string& bytes) {
  files::make_folder(path.parent_path().string());
  files::AtomicFile file(path.string());
  file.write(bytes);
  file.finish(false);
}

bool write_if_changed(const fs::path& path, const std::string& bytes) {
  std::error_code ignored;
  if (fs::file_size(path, ignored) == bytes.size() && text_of(path) == bytes) return false;
  write_file(path, bytes);
  return true;
}

void refuse_strangers(const fs::path& folder, const std::vector<Page>& pages, const Names& ours) {
  for (const auto& page : pages)
    if (ours.count(page.name) == 0 && files::is_there((folder / page.name).string()))
      throw ConfigError(
          fmt::format("{}: is in the way, and was not written by `peakbench publish`. Move it, or "
                      "name another folder with --out",
                      (folder / page.name).string()));
}

// The folders that a removed page leaves empty go with it.
void remove_page(const fs::path& folder, const std::string& name) {
  std::error_code ignored;
  fs::remove(folder / name, ignored);
  for (auto parent = (folder / name).parent_path(); parent != folder; parent = parent.parent_path())
    if (!fs::remove(parent, ignored)) break;
}

}  // namespace

Published write_pages(const std::string& directory, const std::vector<Page>& pages) {
  const fs::path folder(directory);
  files::make_folder(folder.string());
  const Names before = read_manifest(folder);
  refuse_strangers(folder, pages, before);
  Names now, either = before;
  for (const auto& page : pages) now.insert(page.name);
  either.insert(now.begin(), now.end());
  if (either != before) write_file(folder / kManifest, manifest_text(either));
  Published published;
  for (const auto& page : pages)
    ++(write_if_changed(folder / page.name, page.bytes()) ? published.written
                                                          : published.unchanged);
  for (const auto& name : before) {
    if (now.count(name) != 0) continue;
    remove_page(folder, name);
    ++published.removed;
  }
  write_if_changed(folder / kManifest, manifest_text(now));
  published.index = (folder / "index.html").string();
  return published;
}

}  // namespace peakbench::site
