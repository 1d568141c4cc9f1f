#include "result/case_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace peakbench::result {
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

}  // namespace peakbench::result
