#include "executor/slurm_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "errors/errors.h"
#include "executor/slurm_words.h"
#include "text/printable.h"

namespace peakbench::executor {
namespace {

constexpr std::int64_t kSecondsAMinute = 60, kSecondsAnHour = 3600, kSecondsADay = 86400;
// From the signal to the end of the time. Slurm sends it up to a minute early.
constexpr std::int64_t kWarning_s = 60;
constexpr std::int64_t kShortTime_s = 300;  // where a warning of a minute is too much

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

void check_text(const std::string& option, const std::string& text) {
  const auto bad = [](unsigned char c) { return c < ' ' || c == '"' || c == '\\' || c == 0x7f; };
  if (std::ranges::any_of(text, bad))
    throw ConfigError(fmt::format("{} holds a character that a batch script cannot: {}", option,
                                  printable(text)));
}

bool has_warning(const SlurmOptions& options) {
  const auto time = walltime_seconds(options.time);
  return !time || *time == 0 || *time >= kShortTime_s;
}

bool is_unlimited(const std::string& text) {
  std::string word;
  for (const unsigned char c : text) word += static_cast<char>(std::tolower(c));
  return word == "unlimited" || word == "infinite" || word == "-1";
}

// "8 cases in 3 tasks", and a line for each row of tasks with the same number of them.
std::string cases_text(const std::vector<std::size_t>& cases) {
  const auto count = [](std::size_t n, const char* what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  auto text = fmt::format(
      "# {} in {}:\n", count(std::accumulate(cases.begin(), cases.end(), std::size_t{0}), "case"),
      count(cases.size(), "task"));
  for (std::size_t from = 0, to = 0; from < cases.size(); from = to) {
    while (to < cases.size() && cases[to] == cases[from]) ++to;
    const bool one = to - from == 1;
    text +=
        fmt::format("#   {}: {}{}\n",
                    one ? fmt::format("task {}", from) : fmt::format("tasks {}-{}", from, to - 1),
                    count(cases[from], "case"), one ? "" : " each");
  }
  return text;
}

}  // namespace

std::optional<std::int64_t> walltime_seconds(const std::string& text) {
  if (is_unlimited(text)) return 0;
  const auto dash = text.find('-');
  if (dash != std::string::npos && dash + 1 == text.size())  // "1-": days alone
    return dash == 0 ? std::nullopt : walltime_seconds(text + "0");
  const auto days = dash == std::string::npos ? std::optional(std::vector<std::int64_t>{0})
                                              : numbers_in(text.substr(0, dash), '-');
  const auto parts = numbers_in(dash == std::string::npos ? text : text.substr(dash + 1), ':');
  if (text.empty() || !days || days->size() != 1 || !parts || parts->size() > 3) return {};
  const auto& at = *parts;
  const auto part = [&](std::size_t i) { return i < at.size() ? at[i] : 0; };
  if (dash != std::string::npos || at.size() == 3)
    return days->front() * kSecondsADay + part(0) * kSecondsAnHour + part(1) * kSecondsAMinute +
           part(2);
  return part(0) * kSecondsAMinute + part(1);
}

void check_options(const SlurmOptions& options) {
  if (!options.time.empty() && !walltime_seconds(options.time))
    throw ConfigError(fmt::format(
        "--time {}: expected minutes, minutes:seconds, hours:minutes:seconds, days-hours, "
        "days-hours:minutes, days-hours:minutes:seconds or UNLIMITED, as sbatch takes them",
        printable(options.time)));
  for (const auto& [option, text] : {std::pair("--partition", &options.partition),
                                     {"--account", &options.account},
                                     {"--gres", &options.gres},
                                     {"--gpus-per-node", &options.gpus_per_node},
                                     {"--qos", &options.qos},
                                     {"--constraint", &options.constraint},
                                     {"--mem", &options.memory}})
    check_text(option, *text);
  if (options.prefix.find('\n') != std::string::npos)
    throw ConfigError("--prefix holds a line break");
}

std::string script_text(const SlurmOptions& options, const ScriptPlace& place) {
  check_text("the folder of the run", place.submission);
  if (place.submission.find('%') != std::string::npos)
    throw ConfigError(fmt::format("the folder of the run holds a %, which Slurm replaces: {}",
                                  printable(place.submission)));
  std::string text = "#!/bin/bash\n";
  const auto say = [&](const std::string& option, const std::string& value) {
    if (!value.empty()) text += fmt::format("#SBATCH --{}=\"{}\"\n", option, value);
  };
  say("job-name", "peakbench");
  say("array", fmt::format("0-{}{}", place.cases.size() - 1,
                           options.at_once > 0 ? fmt::format("%{}", options.at_once) : ""));
  say("ntasks", "1");
  say("cpus-per-task", std::to_string(options.cpus_per_task));
  say("partition", options.partition);
  say("account", options.account);
  say("time", options.time);
  say("gres", options.gres);
  say("gpus-per-node", options.gpus_per_node);
  say("qos", options.qos);
  say("constraint", options.constraint);
  say("mem", options.memory);
  say("output", place.logs + "/%a.txt");
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  if (has_warning(options)) say("signal", fmt::format("B:USR2@{}", kWarning_s));
  text += cases_text(place.cases);
  // One process a task, which starts the ranks of its cases. Ranks on several machines would begin
  // here, with srun.
  text += fmt::format("exec {}{} work {} --task \"$SLURM_ARRAY_TASK_ID\" --jobs {}{}\n",
                      options.prefix.empty() ? "" : options.prefix + " ", quoted(place.program),
                      quoted(place.submission), options.cpus_per_task,
                      place.torch.empty() ? "" : " --torch " + quoted(place.torch));
  return text;
}

}  // namespace peakbench::executor
