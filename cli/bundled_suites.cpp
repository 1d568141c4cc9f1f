#include "cli/bundled_suites.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "errors/errors.h"
#include "files/file.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

fs::path folder_of(const Places& places) {
  return fs::path(places.templates).parent_path() / "suites";
}

}  // namespace

std::string bundled_suite(const Places& places, const std::string& name) {
  return (folder_of(places) / (name + ".toml")).string();
}

std::string suite_file(const Places& places, const std::string& typed) {
  constexpr std::size_t kLongestName = 64;
  if (typed.empty() || typed.size() > kLongestName ||
      typed.find_first_of("/.") != std::string::npos)
    return typed;
  const bool is_there = files::is_there(typed);
  const bool holds_run = files::is_there((fs::path(typed) / "run.json").string());
  if (is_there && (holds_run || !files::is_folder(typed))) return typed;
  if (const auto bundled = bundled_suite(places, typed); files::is_there(bundled)) return bundled;
  if (is_there) return typed;  // a folder: what it lacks is said where it is read
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder_of(places), none))
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  throw ConfigError(fmt::format("{}: there is no such file, and no such suite; bundled are {}",
                                printable(typed), fmt::join(names, ", ")));
}

}  // namespace peakbench::cli
