#include "cli/measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <functional>
#include <system_error>

#include "base/file.h"
#include "launch/machine.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

launch::ParameterCount parameter_count(const planning::Found& plugins) {
  return [&plugins](const std::string& id) -> std::int64_t {
    for (const auto& plugin : plugins.plugins)
      for (const auto& entry : plugin.entries)
        if (plugin.kind == planning::Kind::kModel && entry.id == id) return entry.parameters;
    return 0;
  };
}

std::string dated_name(const std::string& title) {
  std::string name;
  for (const unsigned char c : title) {
    const bool safe = std::isalnum(c) || c == '.' || c == '-' || c == '_';
    if (safe)
      name += static_cast<char>(std::tolower(c));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  name.resize(std::min<std::size_t>(name.size(), 60));
  return fmt::format("results/{}-{:%Y%m%dT%H%M%SZ}", name, fmt::gmtime(std::time(nullptr)));
}

// The first of NAME, NAME-2, NAME-3 ... that `take` takes.
std::string first_free(const std::string& name,
                       const std::function<bool(const std::string&)>& take) {
  std::string free = name;
  for (int number = 2; !take(free); ++number) free = fmt::format("{}-{}", name, number);
  return free;
}

}  // namespace

std::string folder_for(const std::string& title) {
  return first_free(dated_name(title),
                    [](const std::string& name) { return !files::is_there(name); });
}

std::string make_folder_for(const std::string& title) {
  return first_free(dated_name(title), [](const std::string& name) {
    std::error_code error;
    fs::create_directories(fs::path(name).parent_path(), error);
    // Not made, and no error: it is there already.
    return fs::create_directory(name, error) || error;
  });
}

std::size_t jobs_of(std::optional<std::int64_t> typed) {
  return typed ? static_cast<std::size_t>(*typed) : launch::usable_cores();
}

void complete(launch::SessionOptions& options, const planning::Found& plugins,
              std::optional<std::int64_t> jobs) {
  options.parameters = parameter_count(plugins);
  options.jobs = jobs_of(jobs);
}

reports::ReportOptions own_report(const World& world, const std::string& folder) {
  reports::ReportOptions options;
  options.output_directory = (std::filesystem::path(folder) / "report").string();
  options.is_in_run = true;
  options.builtin_template_directory = world.places.templates;
  return options;
}

ConfigError report_not_written(const std::string& problem, const std::string& kept,
                               const std::string& folder) {
  return ConfigError(fmt::format(
      "the report could not be written: {}\n{}; `peakbench report {}` makes the report.", problem,
      kept, folder));
}

}  // namespace peakbench::cli
