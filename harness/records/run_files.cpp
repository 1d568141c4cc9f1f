#include "records/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

#include "base/errors.h"
#include "base/file.h"

namespace peakbench::records {
namespace {

// The rank stands between the two.
struct Pattern {
  CaseFile file;
  std::string_view stem, ending;
};

constexpr std::array<Pattern, 7> kPatterns{{
    {CaseFile::kTrace, "trace", ".sqlite"},
    {CaseFile::kSnapshot, "snapshot", ".pickle"},
    {CaseFile::kLog, "worker", ".log"},
    {CaseFile::kMemoryJob, "memory", ".job.json"},
    {CaseFile::kMemoryResult, "memory", ".result.json"},
    {CaseFile::kThroughputJob, "throughput", ".job.json"},
    {CaseFile::kThroughputResult, "throughput", ".result.json"},
}};

constexpr std::string_view kUnfinished = ".partial";  // as a trace is called until it is whole

const Pattern& pattern_of(CaseFile file) {
  return *std::ranges::find(kPatterns, file, &Pattern::file);
}

}  // namespace

std::string case_folder(const std::string& slug) {
  return fmt::format("{}/{}", kCasesFolder, slug);
}

std::string name_of(CaseFile file, std::size_t rank) {
  const auto& pattern = pattern_of(file);
  return rank == 0 ? fmt::format("{}{}", pattern.stem, pattern.ending)
                   : fmt::format("{}.{}{}", pattern.stem, rank, pattern.ending);
}

std::optional<std::size_t> rank_of(CaseFile file, const std::string& name) {
  if (name == name_of(file)) return 0;
  const auto& pattern = pattern_of(file);
  const auto beside = pattern.stem.size() + 1 + pattern.ending.size();
  if (name.size() <= beside) return std::nullopt;
  const auto digits = std::string_view(name).substr(pattern.stem.size() + 1, name.size() - beside);
  std::size_t rank = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return rank > 0 && name == name_of(file, rank) ? std::optional(rank) : std::nullopt;
}

std::string snapshot_beside(const std::string& trace_path) {
  std::filesystem::path path(trace_path);
  const auto rank = rank_of(CaseFile::kTrace, path.filename().string()).value_or(0);
  return path.replace_filename(name_of(CaseFile::kSnapshot, rank)).string();
}

bool is_case_file(const std::string& name) {
  if (name == kParametersFile) return true;
  if (name.ends_with(kUnfinished) &&
      rank_of(CaseFile::kTrace, name.substr(0, name.size() - kUnfinished.size())))
    return true;
  return std::ranges::any_of(
      kPatterns, [&](const Pattern& pattern) { return rank_of(pattern.file, name).has_value(); });
}

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

}  // namespace peakbench::records
