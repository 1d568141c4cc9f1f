// `peakbench history list`, `show` and `trend`: reading only.
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/errors.h"
#include "base/json.h"
#include "cli/history_command.h"
#include "cli/option_values.h"
#include "reports/run/report.h"
#include "reports/trends/keep.h"
#include "reports/trends/text.h"

namespace peakbench::cli {
namespace {

using Json = nlohmann::ordered_json;

struct HistoryListArguments {
  HistoryPlace place;
  trends::Filter filter;
  std::int64_t last = 50;
  bool all = false;
  OutputFormat format;
};

struct ShowArguments {
  HistoryPlace place;
  std::int64_t number = 0;
  bool json = false;
};

struct TrendArguments {
  HistoryPlace place;
  std::string text, card, branch, metric = "allocated";
  std::int64_t last = 20;
  OutputFormat format;
};

int list(World& world, const HistoryListArguments& arguments) {
  auto filter = arguments.filter;
  filter.limit = arguments.all ? -1 : arguments.last;
  const auto runs = arguments.place.to_read().runs(filter);
  if (!arguments.format.is_text()) {
    Json all = Json::array();
    for (const auto& run : runs) all.push_back(trends::to_json(run));
    world.out << arguments.format.of(all);
    return kDone;
  }
  if (runs.empty()) {
    world.out << "No run fits.\n";
    return kDone;
  }
  world.out << trends::runs_table(runs, world.out_width);
  if (!arguments.all && static_cast<std::int64_t>(runs.size()) == arguments.last)
    world.out << fmt::format("The newest {}; --all shows all, --last N others.\n", runs.size());
  return kDone;
}

int show(World& world, const ShowArguments& arguments) {
  const auto history = arguments.place.to_read();
  const auto row = history.run(arguments.number);
  if (arguments.json) {
    auto json = trends::to_json(row);
    json["run"] = to_json(history.record(row.number));
    world.out << json_text(json);
    return kDone;
  }
  world.out << trends::run_text(row) << "\n"
            << reports::main_table(history.record(row.number), world.out_width);
  return kDone;
}

// A row a point, with what its trend is of.
void add_rows(const trends::NamedTrend& trend, Json& rows) {
  auto json = to_json(trend);
  const auto points = json["points"];
  json.erase("points");
  for (const auto& point : points) {
    auto row = json;
    row.update(point);
    rows.push_back(std::move(row));
  }
}

int trend(World& world, const TrendArguments& arguments) {
  const auto metric = trends::metric_from(arguments.metric);
  const auto history = arguments.place.to_read();
  const auto branch = arguments.branch.empty() ? history.default_branch() : arguments.branch;
  trends::Runs runs(history);
  std::vector<trends::NamedTrend> trends;
  for (const auto& series : history.series(arguments.text, arguments.card)) {
    auto points = trends::trend_of(history, runs, series, branch, arguments.last);
    if (!points.empty()) trends.push_back({series, std::move(points)});
  }
  for (const auto& [number, why] : runs.notes()) world.err << trends::left_out_text(number, why);
  if (arguments.format.name == "csv") {
    Json rows = Json::array();
    for (const auto& one : trends) add_rows(one, rows);
    world.out << arguments.format.of(rows);
    return kDone;
  }
  if (!arguments.format.is_text()) {
    Json all = Json::array();
    for (const auto& one : trends) all.push_back(to_json(one));
    world.out << json_text(Json{{"branch", branch}, {"series", all}});
    return kDone;
  }
  if (trends.empty() && history.branches().empty())
    throw ConfigError(fmt::format("{}: it holds no run yet; `peakbench history add RUN` adds one",
                                  history.path()));
  if (trends.empty())
    throw ConfigError(fmt::format(
        "{}: no case on branch \"{}\" has \"{}\" in its id{}; `peakbench history trend` without a "
        "case shows those there are, --branch names another branch",
        history.path(), branch, arguments.text,
        arguments.card.empty() ? "" : " on a card with \"" + arguments.card + "\" in its name"));
  world.out << fmt::format("branch {}, {}\n", branch.empty() ? "(none)" : branch, arguments.metric)
            << (trends.size() == 1 ? trends::points_table(trends[0], metric, world.out_width)
                                   : trends::trends_table(trends, metric, world.out_width));
  return kDone;
}

}  // namespace

Command add_history_list(CLI::App& parent, World& world) {
  auto* command = parent.add_subcommand("list", "List runs, newest first");
  const auto arguments = std::make_shared<HistoryListArguments>();
  add_history_options(*command, arguments->place);
  add_value(*command, "--branch", arguments->filter.branch, "Only runs of this branch", "NAME");
  add_value(*command, "--suite", arguments->filter.suite, "Only runs of this suite", "NAME");
  add_value(*command, "--card", arguments->filter.card,
            "Only runs with a case on a card with this text in its name", "TEXT");
  add_value(*command, "--commit", arguments->filter.commit,
            "Only runs of commits that begin with ID", "ID");
  command->add_flag("--good", arguments->filter.good, "Only runs that a gate may compare with");
  add_number(*command, "--last", arguments->last, "Number of runs to list", 1, 1'000'000'000)
      ->capture_default_str();
  command->add_flag("--all", arguments->all, "List all runs");
  add_output_format(*command, arguments->format);
  return [&world, arguments] { return list(world, *arguments); };
}

Command add_history_show(CLI::App& parent, World& world) {
  auto* command =
      parent.add_subcommand("show", "Show a run: branch, commit, verdict and its table");
  const auto arguments = std::make_shared<ShowArguments>();
  add_value(*command, "number", arguments->number, "Number of the run in `peakbench history list`",
            "RUN")
      ->required()
      ->check(whole_number(1));
  add_history_options(*command, arguments->place);
  command->add_flag("--json", arguments->json, "Print JSON, including the run's run.json");
  return [&world, arguments] { return show(world, *arguments); };
}

Command add_history_trend(CLI::App& parent, World& world) {
  auto* command =
      parent.add_subcommand("trend", "Show how a case's figures changed, for each card separately");
  const auto arguments = std::make_shared<TrendArguments>();
  add_value(*command, "case", arguments->text, "Part of the case's id, or a pattern with * and ?",
            "CASE");
  add_history_options(*command, arguments->place);
  add_value(*command, "--card", arguments->card, "Only cards with this text in their name", "TEXT");
  add_value(*command, "--branch", arguments->branch,
            "Branch to show (default: main, else the newest run's)", "NAME");
  add_value(*command, "--metric", arguments->metric,
            "Figure to show: allocated, requested, reserved or step", "NAME")
      ->capture_default_str();
  add_number(*command, "--last", arguments->last, "Number of points per case", 1, 1'000'000'000)
      ->capture_default_str();
  add_output_format(*command, arguments->format);
  return [&world, arguments] { return trend(world, *arguments); };
}

}  // namespace peakbench::cli
