#include "executor/submit.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/task_order.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "launch/environment.h"

namespace peakbench::executor {
namespace {

// Those of a task that have ended are there for the others, and are not run.
std::size_t count_to_run(const launch::Cases& cases, const std::set<std::size_t>& to_run) {
  return static_cast<std::size_t>(
      std::ranges::count_if(cases, [&](std::size_t index) { return to_run.contains(index); }));
}

std::string script_for(const SubmissionFiles& files, std::vector<std::size_t> cases,
                       const SubmitOptions& options, const plan::Plan& plan) {
  const auto* worker = plan::only_worker(plan);
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

Submission submit(const plan::Plan& plan, const launch::CaseStates& states,
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

std::string first_script(const plan::Plan& plan, const std::string& run_folder,
                         const SubmitOptions& options, const result::Run* run) {
  auto held = run == nullptr ? result::Run{} : *run;
  const auto states = launch::take_over(plan, held);
  auto to_run = states.pending;
  std::erase_if(to_run, [&](std::size_t i) { return plan.cases[i].decided.has_value(); });
  if (to_run.empty()) return "";
  std::vector<std::size_t> counts;
  for (const auto& cases : deal(plan, states, to_run, options.dealing))
    counts.push_back(count_to_run(cases, to_run));
  return script_for(next_submission(run_folder), std::move(counts), options, plan);
}

}  // namespace peakbench::executor
