#include "result/run_paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "errors/errors.h"
#include "files/file.h"
#include "result/ranks.h"

namespace peakbench::result {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 200, kLongestPath = 4000;

bool has_control(const std::string& text) {
  return std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

// With all links resolved. What cannot be resolved is outside.
bool leads_inside(const std::string& path, const std::string& folder) {
  std::error_code error;
  const auto root = fs::canonical(folder, error);
  if (error) return false;
  const auto real = fs::weakly_canonical(path, error);
  if (error) return false;
  return std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
}

}  // namespace

bool is_file_name(const std::string& text) {
  return !text.empty() && text.size() <= kLongestName && text[0] != '.' && text[0] != '-' &&
         text.find('/') == std::string::npos && !has_control(text);
}

bool is_path_inside(const std::string& text) {
  const fs::path path(text);
  return !text.empty() && text.size() <= kLongestPath && !path.is_absolute() &&
         !has_control(text) && std::ranges::find(path, fs::path("..")) == path.end();
}

std::string run_folder_of(const std::string& run) {
  if (files::is_folder(run)) return run;
  const auto folder = std::filesystem::path(run).parent_path();
  return folder.empty() ? "." : folder.string();
}

bool has_trace(const CaseResult& result) { return !headline_rank(result).trace.empty(); }

std::string trace_file(const CaseResult& result, const std::string& run_folder) {
  if (!has_trace(result) || run_folder.empty()) return "";
  const auto& named = headline_rank(result).trace;
  const auto path = (fs::path(run_folder) / named).string();
  const bool inside = is_path_inside(named);
  if (const auto what = inside ? files::why_no_file(path) : ""; !what.empty())
    throw RunFileError(
        fmt::format("{}: is {}, not a file; expected the trace of {}", path, what, result.spec.id));
  if (!inside || !leads_inside(path, run_folder))
    throw RunFileError(
        fmt::format("{}: the trace of {} leads outside the run's folder; nothing there is read",
                    path, result.spec.id));
  return path;
}

}  // namespace peakbench::result
