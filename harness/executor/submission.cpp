#include "executor/submission.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "executor/attempt.h"
#include "files/file.h"

namespace peakbench::executor {

bool is_stopped(const Task& task) { return !task.stopped_by.empty() && task.attempt >= task.begun; }

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

void write_tasks(const Submission& submission, const plan::Plan& plan) {
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

}  // namespace peakbench::executor
