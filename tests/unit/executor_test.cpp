// A run on a scheduler's machines without a scheduler: how cases are dealt out, and a stand-in that
// runs tasks, loses them, and shows their files late. tests/slurm has the real one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <sstream>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "cluster/merge.h"
#include "cluster/scheduled_run.h"
#include "cluster/submission_files.h"
#include "cluster/task_order.h"
#include "cluster/work.h"
#include "launch/machine.h"
#include "launch/run_folder.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::cluster {
namespace {

namespace fs = std::filesystem;
using namespace peakbench::testing;
using records::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kCard = "emulated:h100-80gb";

planning::Plan many(std::size_t count, const char* device = kCard) {
  std::vector<planning::PlannedCase> cases;
  for (std::size_t i = 0; i < count; ++i)
    cases.push_back(planned_case(fmt::format("m{}", i), "baseline", device));
  return plan_of(std::move(cases));
}

std::vector<launch::Cases> dealt(const planning::Plan& plan, const Dealing& dealing) {
  records::Run none;
  const auto states = launch::take_over(plan, none);
  return deal(plan, states, states.pending, dealing);
}

TEST(Deal, TimedGroupsStayWholeAndOthersAreChunks) {
  auto cases = many(5).cases;
  for (const char* stack : {"baseline", "lora"}) cases.push_back(planned_case("t", stack));
  const auto plan = plan_of(cases);
  EXPECT_THAT(
      dealt(plan, {.cases_a_task = 2}),
      ElementsAre(launch::Cases{0, 1}, launch::Cases{2, 3}, launch::Cases{4}, launch::Cases{5, 6}));
  EXPECT_THAT(dealt(plan, {.cases_a_task = 4}),
              ElementsAre(launch::Cases{0, 1, 2}, launch::Cases{3, 4}, launch::Cases{5, 6}))
      << "even tasks, not a full one and a rest";
  EXPECT_THAT(dealt(plan, {.cases_a_task = 2, .most_tasks = 2}),
              ElementsAre(launch::Cases{0, 1, 2, 3}, launch::Cases{4, 5, 6}));
}

class Told : public launch::RunListener {
 public:
  void run_started(std::size_t, std::size_t) override {}
  void worker_started(const launch::Turn&) override {}
  void worker_progress(std::size_t, const records::Progress&) override {}
  void case_ended(std::size_t place, const records::CaseResult&) override {
    ended.push_back(place);
  }
  void warning(const std::string& text) override { warnings += text + "\n"; }
  std::vector<std::size_t> ended;
  std::string warnings;
};

// Begins every task of a job when it is submitted, and ends it there and then.
class FakeScheduler : public Scheduler {
 public:
  std::string submit(const std::string& script_path) override {
    const auto submission = fs::path(script_path).parent_path().string();
    const auto count = read_tasks(SubmissionFiles(submission)).size();
    ++jobs;
    for (std::size_t task = 0; task < count; ++task)
      seen[task] = begin ? begin(submission, task) : measured(submission, task);
    if (std::exchange(dies, false)) throw HostError("just after sbatch");
    return std::to_string(jobs);
  }
  std::optional<std::string> job_of(const std::string&) override {
    return jobs > 0 ? std::to_string(jobs) : "";
  }
  std::optional<std::map<std::size_t, TaskSeen>> states(const std::string&, std::size_t) override {
    if (silent-- > 0) return std::nullopt;
    if (change) change();
    return seen;
  }
  std::optional<int> restarts(const std::string&, std::size_t) override { return begun_again; }
  std::string cancel(const std::string&) override {
    ++cancelled;
    return "";
  }

  TaskSeen measured(const std::string& submission, std::size_t task, int attempt = 0) {
    std::ostringstream log;
    WorkOptions options;
    options.submission = submission;
    options.task = task;
    options.attempt = attempt;
    options.node = "n1";
    options.patience = std::chrono::milliseconds(300);
    work(options,
         {[] { return planning::Worker{}; },
          [this](const planning::Plan&) { return std::make_unique<Borrowed>(runner); }},
         log);
    return {TaskState::kDone, "COMPLETED", "n1"};
  }

  FakeRunner runner;
  std::function<TaskSeen(const std::string&, std::size_t)> begin;
  std::function<void()> change;
  std::map<std::size_t, TaskSeen> seen;
  std::optional<int> begun_again;
  int jobs = 0, cancelled = 0, silent = 0;
  bool dies = false;

 private:
  struct Borrowed : launch::Runner {
    explicit Borrowed(FakeRunner& own) : runner(own) {}
    launch::WorkerReport run(const launch::WorkerOrder& order,
                             const launch::Listener& listener) override {
      return runner.run(order, listener);
    }
    FakeRunner& runner;
  };
};

class ScheduledTest : public ::testing::Test {
 protected:
  ScheduledTest() {
    options.pace.files = options.pace.files_most = options.pace.states = options.pace.states_most =
        std::chrono::milliseconds(1);
    options.pace.settle = std::chrono::milliseconds(0);
    options.submit.dealing.cases_a_task = 2;
    options.submit.program = "/opt/peakbench";
  }
  records::Run run(const planning::Plan& plan) {
    const launch::RunFolder folder(scratch / "run");
    return run_scheduled(plan, folder, options, scheduler, told);
  }
  static std::vector<std::string> statuses(const records::Run& run) {
    std::vector<std::string> found;
    for (const auto& one : run.cases) found.push_back(to_string(one.status));
    return found;
  }

  ScratchFolder scratch;
  FakeScheduler scheduler;
  Told told;
  ScheduledOptions options;
  std::chrono::steady_clock::time_point submitted;
};

TEST_F(ScheduledTest, MeasuresShowsInOrderAndRunsNothingTwice) {
  const auto plan = many(5);
  EXPECT_EQ(run(plan).status, "complete");
  EXPECT_THAT(told.ended, ElementsAre(0, 1, 2, 3, 4));
  options.resume = true;
  EXPECT_EQ(run(plan).cases.size(), 5U);
  EXPECT_EQ(scheduler.jobs, 1);
  EXPECT_EQ(scheduler.runner.orders.size(), 5U);
}

TEST_F(ScheduledTest, AnOrderIsReadAsItWasWritten) {
  TaskOrder order;
  order.run_folder = "/r";
  order.build = build_of(launch::host_environment(planning::Worker{}));
  order.plan = many(2, "cpu");
  order.plan.cases[1].decided = Status::kConflict;
  order.plan.cases[1].reason = "two of a kind";
  order.plan.cases[0].promise.tolerance = 0.5;
  order.known.pending = {order.plan.cases[0].spec.id};
  const auto path = scratch / "order.json";
  write_order(path, order);
  const auto read = read_order(path);
  EXPECT_EQ(read.plan.cases[0].spec.id, order.plan.cases[0].spec.id);
  EXPECT_EQ(read.plan.cases[0].spec.slug, order.plan.cases[0].spec.slug);
  EXPECT_EQ(read.plan.cases[0].promise.tolerance, 0.5);
  EXPECT_EQ(read.plan.cases[1].decided, Status::kConflict);
  EXPECT_EQ(read.plan.cases[1].reason, "two of a kind");
  EXPECT_EQ(read.plan.request.timeout_s, 60);
  EXPECT_EQ(read.known.pending, order.known.pending);
}

// A machine that has another plugin under the path.
TEST_F(ScheduledTest, AnOrderNamesTheContentOfItsPlugins) {
  auto plan = many(1);
  plan.cases[0].model.path = scratch / "m.so";
  write_text(plan.cases[0].model.path, "one");
  records::Run none;
  const auto states = launch::take_over(plan, none);
  const auto path = scratch / "order.json";
  write_order(path, order_for(plan, states, {0}, scratch.path(),
                              launch::host_environment(planning::Worker{})));
  const auto order = read_order(path);
  EXPECT_EQ(other_plugin(order), "");
  fs::remove(scratch / "m.so");
  write_text(scratch / "m.so", "two");
  EXPECT_THAT(other_plugin(order), HasSubstr("m.so has the sha256 3fc4ccfe7458 here, and "
                                             "7692c3ad3540 where the run was begun"));
}

TEST_F(ScheduledTest, ALostTaskIsSubmittedAgainHoweverOften) {
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    if (scheduler.jobs < 6) return {TaskState::kLost, "PREEMPTED", "n1"};
    return scheduler.measured(submission, task);
  };
  EXPECT_THAT(statuses(run(many(1))), ElementsAre("ok"));
  EXPECT_EQ(scheduler.jobs, 6);
}

TEST_F(ScheduledTest, TheCaseThatHadTheWholeTimeIsATimeoutAndTheOthersAreNot) {
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    if (scheduler.jobs > 1) return scheduler.measured(submission, task);
    files::make_folder(SubmissionFiles(submission).attempt_folder(task, 0));
    write_at_work(SubmissionFiles(submission).at_work(task, 0),
                  {{{fmt::format("m{}/baseline/{}/fp32/b1", task * 2, kCard), task}}});
    return {TaskState::kTimeLimit, "TIMEOUT", "n1"};
  };
  const auto found = run(many(4));
  EXPECT_THAT(statuses(found), ElementsAre("timeout", "ok", "ok", "ok"));
  EXPECT_THAT(found.cases[0].reason, HasSubstr("time limit"));
}

TEST_F(ScheduledTest, MemoryOfTheJobIsTheDevicesOnTheCpuAlone) {
  for (const auto& [device, status] :
       {std::pair("cpu", "out_of_memory"), {kCard, "host_failure"}}) {
    const auto plan = many(1, device);
    scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
      files::make_folder(SubmissionFiles(submission).attempt_folder(task, 0));
      write_at_work(SubmissionFiles(submission).at_work(task, 0), {{{plan.cases[0].spec.id, 0}}});
      return {TaskState::kOutOfMemory, "OUT_OF_MEMORY", "n1"};
    };
    const launch::RunFolder folder(scratch / device);
    const auto found = run_scheduled(plan, folder, options, scheduler, told);
    EXPECT_THAT(statuses(found), ElementsAre(status));
    EXPECT_THAT(found.cases[0].reason, HasSubstr("--mem"));
  }
}

TEST_F(ScheduledTest, AJobWhoseNumberNobodyWroteDownIsFound) {
  std::string submission;
  bool at_work = true;
  scheduler.begin = [&](const std::string& its, std::size_t) -> TaskSeen {
    submission = its;
    return {TaskState::kWaiting, "PENDING", ""};
  };
  scheduler.dies = true;
  const auto plan = many(4);
  EXPECT_THROW(run(plan), HostError);
  scheduler.change = [&] {
    if (!std::exchange(at_work, false)) return;
    for (auto& [task, seen] : scheduler.seen) seen = scheduler.measured(submission, task);
  };
  options.resume = true;
  EXPECT_EQ(run(plan).status, "complete");
  EXPECT_EQ(scheduler.jobs, 1) << "not submitted again";
}

TEST_F(ScheduledTest, ACancelledTaskStaysPendingUntilItIsAskedForAgain) {
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    if (task == 1) return {TaskState::kCancelled, "CANCELLED", ""};
    return scheduler.measured(submission, task);
  };
  const auto plan = many(4);
  auto found = run(plan);
  EXPECT_EQ(found.status, "interrupted");
  EXPECT_EQ(found.pending.size(), 2U);
  scheduler.begin = nullptr;
  options.resume = true;
  EXPECT_EQ(run(plan).status, "complete");
}

void write_stop(const std::string& path) {
  TaskEnd end;
  end.how = TaskEnd::How::kStopped;
  end.why = "SIGTERM";
  write_task_end(path, end);
}

// A task of cases that was begun twice; the first attempt says, in time or late, that a signal
// ended it, and the case that was at work in the second one filled the job's memory.
TEST_F(ScheduledTest, TheOutcomeIsOfTheLastAttempt) {
  const auto plan = many(1, "cpu");
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    const SubmissionFiles files(submission);
    write_stop(files.end(task, 0));
    for (const int attempt : {0, 1}) {
      files::make_folder(files.attempt_folder(task, attempt));
      write_at_work(files.at_work(task, attempt), {{{plan.cases[0].spec.id, 0}}});
    }
    return {TaskState::kOutOfMemory, "OUT_OF_MEMORY", "n1"};
  };
  EXPECT_THAT(statuses(run(plan)), ElementsAre("out_of_memory"));
}

// The same, but of the second attempt's files none is seen: the scheduler knows of it.
TEST_F(ScheduledTest, TheSchedulerSaysWhichAttemptWasTheLast) {
  scheduler.begun_again = 1;
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    const SubmissionFiles files(submission);
    write_stop(files.end(task, 0));
    files::make_folder(files.attempt_folder(task, 0));
    return {TaskState::kOutOfMemory, "OUT_OF_MEMORY", "n1"};
  };
  const auto found = run(many(1, "cpu"));
  EXPECT_THAT(statuses(found), ElementsAre("out_of_memory"));
  EXPECT_THAT(found.cases[0].reason, HasSubstr("attempt 3")) << "which case it was is not known";
}

TEST_F(ScheduledTest, AnAttemptWhoseMachineIsLostHoldsNothingUp) {
  std::list<launch::RunFolder> lost;
  scheduler.begin = [&](const std::string& submission, std::size_t task) {
    lost.emplace_back(SubmissionFiles(submission).attempt_folder(task, 0));  // for ever
    return scheduler.measured(submission, task, 1);
  };
  EXPECT_THAT(statuses(run(many(2))), ElementsAre("ok", "ok"));
  EXPECT_EQ(scheduler.cancelled, 0);
}

// Of a scheduler that does not say which attempt it is.
TEST_F(ScheduledTest, AnAttemptThatFindsItsFolderTakenIsBegunAgain) {
  std::optional<launch::RunFolder> taken;
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    if (scheduler.jobs > 1) return scheduler.measured(submission, task);
    taken.emplace(SubmissionFiles(submission).attempt_folder(task, 0));
    EXPECT_THROW(scheduler.measured(submission, task), HostError);
    EXPECT_THAT(ends_in(SubmissionFiles(submission)), IsEmpty()) << "it is not refused";
    return {TaskState::kFailed, "FAILED", "n1"};
  };
  EXPECT_THAT(statuses(run(many(1))), ElementsAre("ok"));
  EXPECT_EQ(scheduler.cancelled, 0);
}

// It is cut off from the scheduler, and not from the files.
TEST_F(ScheduledTest, AnAttemptEndsWhenALaterOneHasBegun) {
  scheduler.begin = [&](const std::string& submission, std::size_t task) {
    const SubmissionFiles files(submission);
    scheduler.runner.answer = [&](const launch::WorkerOrder& order) {
      files::make_folder(files.attempt_folder(task, 1));
      return FakeRunner::good(order);
    };
    scheduler.measured(submission, task, 0);
    EXPECT_EQ(scheduler.runner.orders.size(), 1U) << "it ended after the case at work";
    const auto end = read_task_end(files.end(task, 0));
    EXPECT_TRUE(end && end->how == TaskEnd::How::kStopped && end->why == "a later attempt");
    scheduler.runner.answer = nullptr;
    return scheduler.measured(submission, task, 1);
  };
  EXPECT_THAT(statuses(run(many(2))), ElementsAre("ok", "ok"));
  EXPECT_EQ(scheduler.runner.orders.size(), 2U) << "what the first one measured is kept";
}

// A queue of an earlier call that cannot be read is not passed over: its job may still run.
class EarlierQueue : public ScheduledTest {
 protected:
  EarlierQueue() {
    scheduler.begin = [](const std::string&, std::size_t) -> TaskSeen {
      return {TaskState::kWaiting, "PENDING", ""};
    };
    scheduler.dies = true;
    EXPECT_THROW(run(many(1)), HostError);
    options.resume = true;
  }
  std::string queued(const std::string& name) const { return scratch / ("run/queue/1/" + name); }
  void replace(const std::string& name, const std::string& text) {
    fs::remove(queued(name));
    write_text(queued(name), text);
  }
  std::string why_not() {
    try {
      run(many(1));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(EarlierQueue, TasksThatCannotBeReadAreAnErrorThatNamesTheFile) {
  for (const char* text : {"", "null", "[]", "{}", R"({"tasks": 3})", R"({"tasks": [3]})"}) {
    replace("tasks.json", text);
    EXPECT_THAT(why_not(), HasSubstr(queued("tasks.json"))) << text;
  }
  fs::remove(queued("tasks.json"));
  EXPECT_THAT(why_not(), HasSubstr(queued("tasks.json") + " is missing"));
  EXPECT_EQ(scheduler.jobs, 1) << "its case is not submitted a second time";
  EXPECT_EQ(scheduler.cancelled, 0);
}

TEST_F(EarlierQueue, AJobThatCannotBeReadIsAnErrorThatNamesTheFile) {
  for (const char* text :
       {"", "null", "{}", R"({"job": 7})", R"({"job": ""})", R"({"job": "--user=me"})"}) {
    replace("job.json", text);
    EXPECT_THAT(why_not(), HasSubstr(queued("job.json"))) << text;
  }
  EXPECT_EQ(scheduler.jobs, 1);
  EXPECT_EQ(scheduler.cancelled, 0);
}

TEST_F(ScheduledTest, ATaskThatEndsWithoutAWordThreeTimesIsAHostFailure) {
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    files::make_folder(SubmissionFiles(submission).attempt_folder(task, 0));
    write_at_work(SubmissionFiles(submission).at_work(task, 0), {});
    return {TaskState::kFailed, "FAILED", "n1"};
  };
  const auto found = run(many(1));
  EXPECT_EQ(scheduler.jobs, 3);
  EXPECT_THAT(statuses(found), ElementsAre("host_failure"));
  EXPECT_THAT(found.cases[0].reason, HasSubstr("attempt 3"));
}

TEST_F(ScheduledTest, AFolderThatNobodyWroteInIsOneError) {
  scheduler.begin = [](const std::string&, std::size_t) -> TaskSeen {
    return {TaskState::kFailed, "FAILED", "n1"};
  };
  try {
    run(many(6));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("left nothing in"));
  }
  EXPECT_EQ(scheduler.cancelled, 1);
}

// What an attribute cache does: the scheduler says that a task has ended long before its files are
// seen.
TEST_F(ScheduledTest, FilesThatAreSeenLateAreWaitedFor) {
  const auto hidden = scratch / "hidden.json";
  options.pace.settle = std::chrono::seconds(20);
  std::string end;
  scheduler.begin = [&](const std::string& submission, std::size_t task) {
    const auto seen = scheduler.measured(submission, task);
    end = SubmissionFiles(submission).end(task, 0);
    fs::rename(end, hidden);
    fs::remove(SubmissionFiles(submission).attempt_folder(task, 0) + "/run.json");
    return seen;
  };
  int looks = 0;
  scheduler.change = [&] {
    if (++looks == 20) fs::rename(hidden, end);
  };
  EXPECT_THAT(statuses(run(many(1))), ElementsAre("ok"));
  EXPECT_EQ(scheduler.jobs, 1) << "nothing was measured twice";
  EXPECT_GE(looks, 20);
}

TEST_F(ScheduledTest, AControllerThatDoesNotAnswerCostsNothing) {
  scheduler.silent = 5;
  scheduler.begin = [](const std::string&, std::size_t) -> TaskSeen {
    return {TaskState::kLost, "NODE_FAIL", "n1"};
  };
  scheduler.change = [&] { scheduler.begin = nullptr; };
  EXPECT_THAT(statuses(run(many(1))), ElementsAre("ok"));
  EXPECT_THAT(told.warnings, HasSubstr("does not answer"));
}

// 10,000 cases in 1,000 tasks that end in the same second: simulated by their files.
TEST_F(ScheduledTest, AThousandTasksThatEndAtOnceAreAllTaken) {
  constexpr std::size_t kCases = 10'000;
  const auto plan = many(kCases);
  options.submit.dealing.cases_a_task = 10;
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    const SubmissionFiles files(submission);
    const auto order = read_order(files.order(task));
    TaskEnd end;
    end.task = task;
    end.run = order.known;
    end.run->pending.clear();
    for (const auto& planned : order.plan.cases) {
      records::CaseResult one;
      one.spec = planned.spec;
      one.memory = memory_of(1000);
      one.throughput_reason = "none";
      end.run->cases.push_back(one);
    }
    write_task_end(files.end(task, 0), end);
    if (task + 1 == kCases / 10) submitted = std::chrono::steady_clock::now();
    return {TaskState::kDone, "COMPLETED", "n1"};
  };
  const auto found = run(plan);
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - submitted);
  EXPECT_EQ(found.cases.size(), kCases);
  EXPECT_EQ(found.status, "complete");
  fmt::print("1000 tasks taken in {:.2f} s\n", took.count());
}

class MergeTest : public ScheduledTest {
 protected:
  PartialRun part(const std::string& name, const planning::Plan& plan) {
    launch::SessionOptions session;
    const launch::RunFolder folder(scratch / name);
    return {folder.path(), launch::run_plan(plan, folder, session, scheduler.runner, told)};
  }
  static std::string why_not(const std::vector<PartialRun>& parts) {
    try {
      merged(parts);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(MergeTest, JoinsWhatBelongsTogether) {
  auto all = many(3).cases;
  auto a = part("a", plan_of({all[0], all[1]})), b = part("b", plan_of({all[2]}));
  b.run.environment["cpu"] = "another processor";
  a.run.pending.push_back(all[2].spec.id);
  const auto run = merged({a, b});
  EXPECT_EQ(run.cases.size(), 3U);
  EXPECT_THAT(run.pending, IsEmpty());
  EXPECT_EQ(run.cases[2].environment["cpu"], "another processor");
  EXPECT_FALSE(run.cases[0].environment.contains("cpu"));
}

TEST_F(MergeTest, SaysWhatDiffers) {
  auto all = many(2).cases;
  const auto a = part("a", plan_of({all[0]})), b = part("b", plan_of({all[1]}));
  EXPECT_EQ(why_not({a, b}), "");
  EXPECT_THAT(why_not({a, a}), HasSubstr("both have measured m0/baseline"));
  auto other = b;
  other.run.cases[0].plugins = {{"model", "m0", "m.so", std::string(64, 'b')}};
  EXPECT_EQ(why_not({a, other}), "") << "one of them does not say";
  auto known = a;
  known.run.cases[0].plugins = {{"model", "m0", "m.so", std::string(64, 'a')}};
  EXPECT_THAT(why_not({known, other}),
              HasSubstr("the plugin m.so is another build in one than in the other (sha256 "
                        "aaaaaaaaaaaa and bbbbbbbbbbbb)"));
  other = b;
  other.run.settings["steps"] = 9;
  EXPECT_THAT(why_not({a, other}), HasSubstr("steps is 3 in one and 9 in the other"));
  other = b;
  other.run.environment["commit"] = "abc";
  EXPECT_THAT(why_not({a, other}), HasSubstr("commit is"));
  other = b;
  other.run.cases[0].spec.device_options["tf32"] = "on";
  EXPECT_THAT(why_not({a, other}), HasSubstr("device options"));
  other = b;
  other.run.cases[0].spec.slug = a.run.cases[0].spec.slug;
  EXPECT_THAT(why_not({a, other}), HasSubstr("have one slug"));
  other = b;
  other.run.reference = "lora";
  EXPECT_THAT(why_not({a, other}), HasSubstr("reference"));
}

}  // namespace
}  // namespace peakbench::cluster
