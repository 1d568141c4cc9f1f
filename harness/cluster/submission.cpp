#include "cluster/submission.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cluster/attempt.h"
#include "cluster/slurm.h"
#include "cluster/task_order.h"
#include "launch/equivalence_check.h"
#include "launch/run_folder.h"

namespace peakbench::cluster {
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
  const auto word = lower(text);
  return word == "unlimited" || word == "infinite" || word == "-1";
}

// "8 cases in 3 tasks", and a line for each row of tasks with the same number of them.
std::string cases_text(const std::vector<std::size_t>& cases) {
  const auto all = std::accumulate(cases.begin(), cases.end(), std::size_t{0});
  auto text =
      fmt::format("# {} in {}:\n", count_text(all, "case"), count_text(cases.size(), "task"));
  for (std::size_t from = 0, to = 0; from < cases.size(); from = to) {
    while (to < cases.size() && cases[to] == cases[from]) ++to;
    const bool one = to - from == 1;
    text +=
        fmt::format("#   {}: {}{}\n",
                    one ? fmt::format("task {}", from) : fmt::format("tasks {}-{}", from, to - 1),
                    count_text(cases[from], "case"), one ? "" : " each");
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
  for (const auto& one : kSlurmTexts) check_text(one.option, options.*one.value);
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
    if (!value.empty()) text += fmt::format("#SBATCH {}=\"{}\"\n", option, value);
  };
  say("--job-name", "peakbench");
  say("--array", fmt::format("0-{}{}", place.cases.size() - 1,
                             options.at_once > 0 ? fmt::format("%{}", options.at_once) : ""));
  say("--ntasks", "1");
  say("--cpus-per-task", std::to_string(options.cpus_per_task));
  for (const auto& one : kSlurmTexts) say(one.option, options.*one.value);
  say("--output", place.logs + "/%a.txt");
  text += "#SBATCH --open-mode=append\n#SBATCH --requeue\n";
  if (has_warning(options)) say("--signal", fmt::format("B:USR2@{}", kWarning_s));
  text += cases_text(place.cases);
  // One process a task, which starts the workers of its cases.
  text += fmt::format("exec {}{} work {} --task \"$SLURM_ARRAY_TASK_ID\" --jobs {}{}\n",
                      options.prefix.empty() ? "" : options.prefix + " ", quoted(place.program),
                      quoted(place.submission), options.cpus_per_task,
                      place.torch.empty() ? "" : " --torch " + quoted(place.torch));
  return text;
}

namespace {

using launch::Cases;

std::size_t divided_up(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

// As few as can be, and as even.
std::vector<Cases> chunks(const Cases& cases, std::size_t most) {
  std::vector<Cases> found(divided_up(cases.size(), most));
  auto from = cases.begin();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto left = static_cast<std::size_t>(cases.end() - from);
    const auto to = from + static_cast<std::ptrdiff_t>(divided_up(left, found.size() - i));
    found[i].assign(from, to);
    from = to;
  }
  return found;
}

std::vector<Cases> joined_to(std::vector<Cases> tasks, std::size_t most) {
  if (tasks.size() <= most) return tasks;
  const auto together = divided_up(tasks.size(), most);
  std::vector<Cases> fewer(divided_up(tasks.size(), together));
  for (std::size_t i = 0; i < tasks.size(); ++i)
    fewer[i / together].insert(fewer[i / together].end(), tasks[i].begin(), tasks[i].end());
  return fewer;
}

}  // namespace

std::vector<Cases> deal(const planning::Plan& plan, const launch::CaseStates& states,
                        const std::set<std::size_t>& to_run, const Dealing& dealing) {
  Cases alone;
  std::vector<Cases> timed;
  for (const auto& group : launch::execution_groups(plan)) {
    const auto runs = [&](std::size_t index) { return to_run.contains(index); };
    if (std::ranges::none_of(group, runs)) continue;
    if (launch::has_times(states, group))
      timed.push_back(group);
    else
      std::ranges::copy_if(group, std::back_inserter(alone), runs);
  }
  auto tasks = chunks(alone, dealing.cases_a_task);
  tasks.insert(tasks.end(), timed.begin(), timed.end());
  return joined_to(std::move(tasks), dealing.most_tasks);
}

bool is_stopped(const Task& task) { return !task.stopped_by.empty() && task.attempt >= task.begun; }

std::string count_text(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string name_of(const Submission& submission, const Task& task) {
  return fmt::format("task {} of job {}", task.number, submission.job);
}

std::string end_text(const Task& task) {
  return task.seen.where.empty() ? task.seen.word
                                 : fmt::format("{} on {}", task.seen.word, task.seen.where);
}

bool is_over(const Submission& submission) {
  return std::ranges::all_of(submission.tasks, &Task::over);
}

Submission read_submission(const SubmissionFiles& files,
                           const std::map<std::string, std::size_t>& index_of) {
  Submission submission{files, "", {}};
  for (const auto& ids : read_tasks(files)) {
    Task task;
    task.number = submission.tasks.size();
    for (const auto& id : ids)
      if (const auto found = index_of.find(id); found != index_of.end())
        task.cases.push_back(found->second);
    submission.tasks.push_back(std::move(task));
  }
  return submission;
}

void write_tasks(const Submission& submission, const planning::Plan& plan) {
  std::vector<std::vector<std::string>> ids;
  for (const auto& task : submission.tasks) {
    auto& of_task = ids.emplace_back();
    for (const auto index : task.cases) of_task.push_back(plan.cases[index].spec.id);
  }
  write_tasks(submission.files, ids);
}

std::string job_of(const SubmissionFiles& files, Scheduler& scheduler) {
  if (auto job = read_job(files); !job.empty() || !files::is_there(files.script())) return job;
  const auto found = scheduler.job_of(files.script());
  if (!found)
    throw ConfigError(fmt::format(
        "the scheduler does not say whether it has a job of {}. Try again later.", files.script()));
  if (!found->empty()) write_job(files, *found);
  return *found;
}

std::map<std::size_t, TaskSeen> states_of(const std::string& job, std::size_t tasks,
                                          Scheduler& scheduler) {
  auto states = scheduler.states(job, tasks);
  if (!states)
    throw ConfigError(
        fmt::format("the scheduler does not say whether job {} of an earlier call "
                    "still runs. Try again later.",
                    job));
  return std::move(*states);
}

std::string live_jobs(const std::string& run_folder, Scheduler& scheduler) {
  std::string jobs;
  for (const auto number : submissions_in(run_folder)) {
    const auto job = job_of({run_folder, number}, scheduler);
    if (job.empty()) continue;
    const auto states = states_of(job, 0, scheduler);
    const bool live = std::ranges::any_of(states, [](const auto& one) {
      return stage_of(one.second.state, false, false) == Stage::kAtWork;
    });
    if (live) jobs += (jobs.empty() ? "" : ", ") + job;
  }
  return jobs;
}

namespace {

// Those of a task that have ended are there for the others, and are not run.
std::size_t count_to_run(const launch::Cases& cases, const std::set<std::size_t>& to_run) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cases, [&](std::size_t index) { return to_run.contains(index); }));
}

std::string script_for(const SubmissionFiles& files, std::vector<std::size_t> cases,
                       const SubmitOptions& options, const planning::Plan& plan) {
  const auto* worker = planning::only_worker(plan);
  const auto torch =
      worker == nullptr || worker->torch.folder.empty() ? "" : libtorch_version(*worker);
  return script_text(options.slurm,
                     {options.program, files.folder(), files.logs(), std::move(cases), torch});
}

// For a submission that is about to be made.
SubmissionFiles next_submission(const std::string& run_folder) {
  const auto numbers = submissions_in(run_folder);
  return {run_folder, numbers.empty() ? 1 : numbers.back() + 1};
}

}  // namespace

Submission submit(const planning::Plan& plan, const launch::CaseStates& states,
                  const std::set<std::size_t>& to_run, const std::string& run_folder,
                  const SubmitOptions& options, Scheduler& scheduler) {
  const auto host = launch::host_environment(plan);
  Submission submission{next_submission(run_folder), "", {}};
  const auto& files = submission.files;
  files::make_folder(files.ends());
  files::make_folder(files.logs());
  std::vector<std::size_t> counts;
  for (auto& cases : deal(plan, states, to_run, options.dealing)) {
    Task task;
    task.number = submission.tasks.size();
    task.cases = std::move(cases);
    counts.push_back(count_to_run(task.cases, to_run));
    files::make_folder(files.task_folder(task.number));
    write_order(files.order(task.number), order_for(plan, states, task.cases, run_folder, host));
    submission.tasks.push_back(std::move(task));
  }
  write_tasks(submission, plan);
  files::write_file_atomically(files.script(), script_for(files, std::move(counts), options, plan));
  submission.job = scheduler.submit(files.script());
  write_job(files, submission.job);
  return submission;
}

std::string first_script(const planning::Plan& plan, const std::string& run_folder,
                         const SubmitOptions& options, const records::Run* run) {
  auto held = run == nullptr ? records::Run{} : *run;
  const auto states = launch::take_over(plan, held);
  auto to_run = states.pending;
  std::erase_if(to_run, [&](std::size_t i) { return plan.cases[i].decided.has_value(); });
  if (to_run.empty()) return "";
  std::vector<std::size_t> counts;
  for (const auto& cases : deal(plan, states, to_run, options.dealing))
    counts.push_back(count_to_run(cases, to_run));
  return script_for(next_submission(run_folder), std::move(counts), options, plan);
}

}  // namespace peakbench::cluster
