// A run on a scheduler's machines without a scheduler: what Slurm's commands printed, how cases are
// dealt out, and a stand-in that runs tasks, loses them, and shows their files late.
// tests/slurm has the real one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <utility>

#include "errors/errors.h"
#include "executor/merge.h"
#include "executor/scheduled_run.h"
#include "executor/slurm_words.h"
#include "executor/submission_files.h"
#include "executor/task_order.h"
#include "executor/work.h"
#include "files/file.h"
#include "launch/host.h"
#include "launch/run_folder.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::executor {
namespace {

namespace fs = std::filesystem;
using namespace peakbench::testing;
using result::Status;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kCard = "emulated:h100-80gb";

TEST(Slurm, ReadsTimesAsSbatchDoes) {
  EXPECT_EQ(walltime_seconds("90"), 5400);
  EXPECT_EQ(walltime_seconds("1:30"), 90);
  EXPECT_EQ(walltime_seconds("2:00:05"), 7205);
  EXPECT_EQ(walltime_seconds("1-12"), 129600);
  EXPECT_EQ(walltime_seconds("1-0:30"), 88200);
  EXPECT_EQ(walltime_seconds("1-0:0:1"), 86401);
  for (const char* bad : {"", "soon", "1:", "1:2:3:4", "-1", "1-", "-", "1-2-3", "1.5", " 1"})
    EXPECT_EQ(walltime_seconds(bad), std::nullopt) << bad;
}

TEST(Slurm, ReadsIdsOfTasks) {
  EXPECT_THAT(tasks_of_id("12_3"), ElementsAre(3));
  EXPECT_THAT(tasks_of_id("12_[0-2,7]"), ElementsAre(0, 1, 2, 7));
  EXPECT_THAT(tasks_of_id("12_[1-9:4%2]"), ElementsAre(1, 5, 9));
  for (const char* other : {"12", "12+1", "12_[", "12_x", "12_3.batch", ""})
    EXPECT_THAT(tasks_of_id(other), IsEmpty()) << other;
}

// As squeue 22.05 printed it, with what no node here can be made to say: a drained node's reason, a
// preempted task, one that was held after a failed start.
TEST(Slurm, ReadsSqueue) {
  const auto states = states_from(
      "7_[4-5%2]|PENDING|(JobArrayTaskLimit)\n7_0|COMPLETED|n1\n7_1|RUNNING|n2\n"
      "7_2|COMPLETING|n1\n7_3|NODE_FAIL|n1\n7_6|PREEMPTED|n1\n7_7|OUT_OF_MEMORY|n2\n"
      "7_8|PENDING|(launch failed requeued held)\n7_9|SOMETHING_NEW|n1\n"
      "7_10|PENDING|(Job's account not known, so it can't use this partition (guarded allows "
      "nobody))\nslurm_load_jobs error: nothing\n\n");
  ASSERT_EQ(states.size(), 11U);
  EXPECT_EQ(states.at(0).state, TaskState::kDone);
  EXPECT_EQ(states.at(1).state, TaskState::kRunning);
  EXPECT_EQ(states.at(1).where, "n2");
  EXPECT_EQ(states.at(2).state, TaskState::kRunning);
  EXPECT_EQ(states.at(3).state, TaskState::kLost);
  EXPECT_EQ(states.at(4).state, TaskState::kWaiting);
  EXPECT_EQ(states.at(5).where, "(JobArrayTaskLimit)");
  EXPECT_EQ(states.at(6).state, TaskState::kLost);
  EXPECT_EQ(states.at(7).state, TaskState::kOutOfMemory);
  EXPECT_EQ(states.at(8).state, TaskState::kWaiting);
  EXPECT_EQ(states.at(9).state, TaskState::kRunning) << "nothing follows from an unknown word";
  EXPECT_EQ(states.at(10).state, TaskState::kNever);
}

// sacct --parsable2: steps are lines of their own.
TEST(Slurm, ReadsSacct) {
  const auto states = states_from(
      "31_0|COMPLETED|n1\n31_1|CANCELLED by 1000|n2\n31_2|TIMEOUT|n1\n31_2.batch|CANCELLED|n1\n"
      "31_3|FAILED|None assigned\n31_[4-6]|PENDING|None assigned\n");
  EXPECT_EQ(states.size(), 7U);
  EXPECT_EQ(states.at(1).state, TaskState::kCancelled);
  EXPECT_EQ(states.at(2).state, TaskState::kTimeLimit) << "not its step's";
  EXPECT_EQ(states.at(6).state, TaskState::kWaiting);
}

TEST(Slurm, FindsTheJobsNumber) {
  EXPECT_EQ(job_from("123\n"), "123");
  EXPECT_EQ(job_from("sbatch: note of the site\n123;cluster\n"), "123");
  EXPECT_EQ(job_from("Submitted nothing\n"), "");
}

TEST(Script, SaysWhatIsAskedAndQuotesPaths) {
  SlurmOptions options;
  options.partition = "gpu";
  options.time = "4";
  options.at_once = 3;
  const auto text = script_text(options, {"/opt/it's/peakbench", "/r/queue/1", "/r/log", 7});
  EXPECT_THAT(text, HasSubstr("#SBATCH --array=\"0-6%3\"\n"));
  EXPECT_THAT(text, HasSubstr("#SBATCH --partition=\"gpu\"\n"));
  EXPECT_THAT(text, HasSubstr("exec '/opt/it'\\''s/peakbench' work '/r/queue/1' --task"));
  EXPECT_EQ(text.find("USR2"), std::string::npos) << "a minute's warning is too much of four";
  options.time = "5";
  EXPECT_THAT(script_text(options, {"/p", "/q", "/l", 1}), HasSubstr("--signal=\"B:USR2@60\""));
  EXPECT_THROW(script_text(options, {"/p", "/r/50%", "/l", 1}), ConfigError);
  options.account = "a\n#SBATCH --uid=0";
  EXPECT_THROW(check_options(options), ConfigError);
}

plan::Plan many(std::size_t count, const char* device = kCard) {
  std::vector<plan::PlannedCase> cases;
  for (std::size_t i = 0; i < count; ++i)
    cases.push_back(planned_case(fmt::format("m{}", i), "baseline", device));
  return plan_of(std::move(cases));
}

std::vector<launch::Cases> dealt(const plan::Plan& plan, const Dealing& dealing) {
  result::Run none;
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
  void worker_progress(std::size_t, const result::Progress&) override {}
  void case_ended(std::size_t place, const result::CaseResult&) override { ended.push_back(place); }
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
    work(
        options, [this] { return std::make_unique<Borrowed>(runner); }, log);
    return {TaskState::kDone, "COMPLETED", "n1"};
  }

  FakeRunner runner;
  std::function<TaskSeen(const std::string&, std::size_t)> begin;
  std::function<void()> change;
  std::map<std::size_t, TaskSeen> seen;
  int jobs = 0, cancelled = 0, silent = 0;
  bool dies = false;

 private:
  struct Borrowed : launch::Runner {
    explicit Borrowed(FakeRunner& own) : runner(own) {}
    launch::GroupReport run(const launch::GroupOrder& order,
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
  result::Run run(const plan::Plan& plan) {
    const launch::RunFolder folder(scratch / "run");
    return run_scheduled(plan, folder, options, scheduler, told);
  }
  static std::vector<std::string> statuses(const result::Run& run) {
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
  order.build = build_of(launch::host_environment());
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
  result::Run none;
  const auto states = launch::take_over(plan, none);
  const auto path = scratch / "order.json";
  write_order(path, order_for(plan, states, {0}, scratch.path(), launch::host_environment()));
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
    write_at_work(SubmissionFiles(submission).at_work(task),
                  {0, {{fmt::format("m{}/baseline/{}/fp32/b1", task * 2, kCard), task}}});
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
      write_at_work(SubmissionFiles(submission).at_work(task), {0, {{plan.cases[0].spec.id, 0}}});
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

TEST_F(ScheduledTest, ATaskThatEndsWithoutAWordThreeTimesIsAHostFailure) {
  scheduler.begin = [&](const std::string& submission, std::size_t task) -> TaskSeen {
    write_at_work(SubmissionFiles(submission).at_work(task), {0, {}});
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
    fs::remove(SubmissionFiles(submission).task_folder(task) + "/run.json");
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
      result::CaseResult one;
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
  PartialRun part(const std::string& name, const plan::Plan& plan) {
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
}  // namespace peakbench::executor
