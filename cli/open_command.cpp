// `peakbench open`: a run's report in a browser.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/errors.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/measure.h"
#include "cli/option_values.h"
#include "host/command.h"
#include "records/run_files.h"
#include "reports/run/report.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOpenFooter = R"(Examples:
  peakbench open
  peakbench open results/vit
  peakbench open results/vit --print
If the report does not exist, it is written first. Without RUN: the run in this folder, else the newest run
in results/. The browser is $BROWSER, else what xdg-open starts.
Exit codes: the browser's; 2 no run or no browser was found.)";

struct OpenArguments {
  std::string run;
  bool print = false;
};

// The folder of the run that ended last; empty where there is none.
std::string newest_run(const fs::path& folder) {
  std::string newest;
  std::optional<fs::file_time_type> when;
  std::error_code ignored;
  for (const auto& name : files::names_in(folder.string())) {
    const auto written = fs::last_write_time(folder / name / "run.json", ignored);
    if (ignored || (when && written <= *when)) continue;
    when = written;
    newest = (folder / name).string();
  }
  return newest;
}

std::string run_meant(const std::string& given) {
  if (!given.empty() && !files::is_there(given))
    throw ConfigError(given + ": there is no such run");
  if (!given.empty()) return records::run_folder_of(given);
  if (files::is_there("run.json")) return ".";
  auto newest = newest_run("results");
  if (newest.empty())
    throw ConfigError("no run.json here, and no run in results/: name a run's folder");
  return newest;
}

// Of a published site, or of a comparison, the page that was named.
std::string page_of(World& world, const std::string& given) {
  if (fs::path(given).extension() == ".html") return given;
  if (!given.empty() && !files::is_there((fs::path(given) / "run.json").string()) &&
      files::is_there((fs::path(given) / "index.html").string()))
    return (fs::path(given) / "index.html").string();
  const auto run = run_meant(given);
  const auto page = fs::path(run) / "report/index.html";
  if (files::is_there(page.string())) return page.string();
  auto options = own_report(world, run);
  options.formats = {"html"};
  reports::write_reports({run}, options);
  return page.string();
}

// In place of this program, so that a browser in the terminal has the terminal.
int become_browser(World& world, const std::string& page) {
  const char* asked = std::getenv("BROWSER");
  const std::string browser = asked != nullptr && *asked != '\0' ? asked : "xdg-open";
  const auto program = process::find_program(browser);
  if (!program)
    throw ConfigError(
        fmt::format("{} was not found: open the page yourself, or set BROWSER",
                    asked != nullptr && *asked != '\0' ? "BROWSER, " + browser + "," : browser));
  world.out << std::flush;
  const auto path = program->string();
  execl(path.c_str(), path.c_str(), page.c_str(), nullptr);
  throw ConfigError(fmt::format("{} could not be started: {}", path, std::strerror(errno)));
}

}  // namespace

Command add_open(CLI::App& app, World& world) {
  auto* command = subcommand(app, "open", "Open a run's report in a browser", kOpenFooter);
  const auto arguments = std::make_shared<OpenArguments>();
  add_value(*command, "run", arguments->run,
            "Run folder or its run.json, a page, or the folder of a site", "RUN");
  command->add_flag("--print", arguments->print, "Print the page's path instead of opening it");
  return [&world, arguments] {
    const auto page = page_of(world, arguments->run);
    if (!files::is_there(page)) throw ConfigError(page + ": there is no such page");
    world.out << fs::absolute(page).lexically_normal().string() << "\n";
    return arguments->print ? kDone : become_browser(world, page);
  };
}

}  // namespace peakbench::cli
