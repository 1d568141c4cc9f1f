#include "executor/merged_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "errors/errors.h"
#include "errors/host_limits.h"
#include "files/copy_file.h"
#include "files/folder.h"
#include "files/regular_file.h"
#include "result/case_files.h"

namespace peakbench::executor {
namespace {

namespace fs = std::filesystem;
using files::Folder;
using files::RegularFile;
using result::CaseFile;

// The folder of a file below a run's; nullopt: it is not there.
std::optional<Folder> folder_of(const std::string& run_folder, const std::string& path) {
  std::optional<Folder> at(std::in_place, run_folder);
  for (const auto& part : fs::path(path).parent_path()) {
    if (part.empty() || part == ".") continue;
    auto next = at->folder(part.string());
    if (!next) return std::nullopt;
    at.emplace(std::move(*next));
  }
  return at;
}

// Of one that is there and not open.
[[noreturn]] void refuse(const RegularFile& file, const std::string& path) {
  if (file.is_link()) files::refuse_link(path);
  if (file.is_folder())
    throw ConfigError(fmt::format("{}: is a folder; expected a file of a case", path));
  if (file.error() == 0)
    throw ConfigError(fmt::format("{}: is a pipe or a device; expected a file of a case", path));
  const auto text = fmt::format(
      "{}: cannot be read: {}", path,
      is_host_error(file.error()) ? host_error_text(file.error()) : std::strerror(file.error()));
  if (is_host_error(file.error())) throw HostError(text);
  throw ConfigError(text);
}

bool is_to_copy(const std::string& run_folder, const std::string& path) {
  const auto folder = folder_of(run_folder, path);
  if (!folder) return false;
  const auto name = fs::path(path).filename().string();
  const RegularFile file(*folder, name);
  if (file.is_open()) return true;
  if (file.error() == ENOENT) return false;
  refuse(file, folder->path_of(name));
}

}  // namespace

void find_files(result::CaseResult& one, const std::string& run_folder, FilesToCopy& found) {
  const auto own = result::case_folder(one.spec.slug) + "/";
  const auto add = [&](const std::string& path, const std::string& name) {
    const bool is_there = is_to_copy(run_folder, path);
    if (is_there) found.files.push_back({run_folder, path, one.spec.slug, name});
    return is_there;
  };
  // A case that the machine failed has no rank, but a log.
  for (std::size_t rank = 0; rank < std::max<std::size_t>(1, one.ranks.size()); ++rank) {
    const auto name = name_of(CaseFile::kTrace, rank), log = name_of(CaseFile::kLog, rank);
    const bool is_named = rank < one.ranks.size() && !one.ranks[rank].trace.empty();
    const auto trace = is_named ? std::exchange(one.ranks[rank].trace, own + name) : own + name;
    if (!add(trace, name) && is_named)
      found.absent.push_back((fs::path(run_folder) / trace).string());
    add(result::snapshot_beside(trace), name_of(CaseFile::kSnapshot, rank));
    add(own + log, log);
  }
}

bool copy_files(const std::vector<FileToCopy>& files, const launch::IncomingCases& to,
                const std::function<bool()>& cancelled) {
  return std::ranges::all_of(files, [&](const FileToCopy& one) {
    const auto folder = folder_of(one.run_folder, one.path);
    const auto path = (fs::path(one.run_folder) / one.path).string();
    if (!folder) throw ConfigError(fmt::format("{}: is not there any more", path));
    const RegularFile file(*folder, fs::path(one.path).filename().string());
    if (!file.is_open()) refuse(file, path);
    return files::copy_file({file, path}, to.folder_of(one.slug), one.name, cancelled);
  });
}

}  // namespace peakbench::executor
