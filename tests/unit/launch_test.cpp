// From a plan to run.json with a runner that starts nothing; launch_process_test.cpp has the
// processes.
#include <gtest/gtest.h>

#include <filesystem>

#include "launch/case.h"
#include "launch/device_environment.h"
#include "launch/hand_over.h"
#include "launch/host.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "launch/throughput.h"
#include "result/errors.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using result::JobMode;
using result::Status;
using namespace peakbench::testing;

class Silent : public Observer {
 public:
  void run_started(std::size_t to_run, std::size_t kept_cases) override {
    started = to_run;
    kept = kept_cases;
  }
  void case_started(std::size_t, const plan::PlannedCase& planned) override {
    ids.push_back(planned.spec.id);
  }
  void case_progress(JobMode, const result::Progress&) override { ++progress; }
  void case_ended(std::size_t, const result::CaseResult&) override { ++ended; }
  std::size_t started = 0, kept = 0, ended = 0, progress = 0;
  std::vector<std::string> ids;
};

class SessionTest : public ::testing::Test {
 protected:
  result::Run run(const plan::Plan& plan) { return run_plan(plan, options(), runner, observer); }
  SessionOptions options() const {
    SessionOptions options;
    options.directory = scratch / "run";
    options.resume = resume;
    options.overwrite = overwrite;
    options.command = {"peakbench", "run"};
    return options;
  }

  ScratchFolder scratch;
  FakeRunner runner;
  Silent observer;
  bool resume = false, overwrite = false;
};

WorkerReport failure(Status status, const std::string& reason) {
  WorkerReport report;
  report.result.status = status;
  report.result.reason = reason;
  return report;
}

TEST_F(SessionTest, EveryCaseHasAMemoryAndAThroughputWorker) {
  const auto run = this->run(plan_of({planned_case("m", "baseline"), planned_case("m", "lora")}));
  ASSERT_EQ(runner.orders.size(), 4u);
  EXPECT_EQ(runner.orders[0].job.mode, JobMode::kMemory);
  EXPECT_EQ(runner.orders[1].job.mode, JobMode::kThroughput);
  EXPECT_EQ(runner.orders[0].job.warmup, 0);  // the peak is over the first steps
  EXPECT_EQ(runner.orders[1].job.warmup, 1);
  EXPECT_TRUE(runner.orders[1].job.trace_path.empty());
  ASSERT_EQ(run.cases.size(), 2u);
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.cases[0].memory->worker_peak_rss_bytes, 777);
  EXPECT_EQ(run.cases[0].throughput->step_times_ns.size(), 3u);
  EXPECT_EQ(run.cases[0].wall_ns, 2'000'000);
  const auto written = result::read_run(scratch / "run");
  EXPECT_EQ(written.cases.size(), 2u);
  EXPECT_TRUE(written.pending.empty());
  EXPECT_FALSE(written.environment.at("cpu").get<std::string>().empty());
}

TEST_F(SessionTest, ResultsAreWrittenAsEachCaseEnds) {
  std::vector<std::size_t> on_disk;
  runner.answer = [&](const WorkerOrder& order) {
    on_disk.push_back(result::read_run(scratch / "run").cases.size());
    EXPECT_EQ(result::read_run(scratch / "run").status, "running");
    return FakeRunner::good(order);
  };
  run(plan_of({planned_case("m", "baseline"), planned_case("m", "lora")}));
  EXPECT_EQ(on_disk, (std::vector<std::size_t>{0, 0, 1, 1}));
}

TEST_F(SessionTest, ADecidedCaseIsARowAndStartsNothing) {
  auto conflicting = planned_case("m", "a+b");
  conflicting.decided = Status::kConflict;
  conflicting.reason = "a and b both fill adapters";
  const auto run = this->run(plan_of({planned_case("m", "baseline"), conflicting}));
  EXPECT_EQ(runner.orders.size(), 2u);
  EXPECT_EQ(run.cases[1].status, Status::kConflict);
  EXPECT_EQ(run.cases[1].reason, "a and b both fill adapters");
}

TEST_F(SessionTest, AFailedCaseDoesNotEndTheRun) {
  runner.answer = [](const WorkerOrder& order) {
    return order.job.case_id.find("bad") != std::string::npos
               ? failure(Status::kCrashed, "killed by SIGSEGV")
               : FakeRunner::good(order);
  };
  const auto run = this->run(plan_of({planned_case("m", "bad"), planned_case("m", "good")}));
  EXPECT_EQ(run.cases[0].status, Status::kCrashed);
  EXPECT_EQ(run.cases[0].throughput_reason, "the memory worker ended crashed");
  EXPECT_EQ(run.cases[1].status, Status::kOk);
  EXPECT_EQ(runner.orders.size(), 3u);  // no throughput worker for the one that crashed
}

TEST_F(SessionTest, AFailedThroughputWorkerKeepsTheMemory) {
  runner.answer = [](const WorkerOrder& order) {
    return order.job.mode == JobMode::kThroughput ? failure(Status::kTimeout, "too long")
                                                  : FakeRunner::good(order);
  };
  const auto run = this->run(plan_of({planned_case("m", "baseline")}));
  EXPECT_EQ(run.cases[0].status, Status::kTimeout);
  EXPECT_TRUE(run.cases[0].memory.has_value());
  EXPECT_EQ(run.cases[0].reason, "in the throughput worker (memory was measured): too long");
}

TEST_F(SessionTest, AnEmulatedCardHasNoThroughputWorker) {
  const auto run = this->run(plan_of({planned_case("m", "baseline", "emulated:h100-80gb")}));
  EXPECT_EQ(runner.orders.size(), 1u);
  EXPECT_FALSE(run.cases[0].throughput.has_value());
  EXPECT_EQ(run.cases[0].throughput_reason, "an emulated card computes nothing: it has no times");
}

TEST_F(SessionTest, RepetitionsAreCombined) {
  auto plan = plan_of({planned_case("m", "baseline")});
  plan.request.repetitions = 3;
  const auto run = this->run(plan);
  EXPECT_EQ(runner.orders.size(), 4u);
  EXPECT_EQ(run.cases[0].throughput->step_ns.count, 9);
  EXPECT_EQ(run.cases[0].throughput->step_ns.min, 2);
  EXPECT_EQ(run.cases[0].throughput->step_ns.median, 3);
  EXPECT_EQ(run.cases[0].throughput->step_ns.p90, 4);
}

TEST_F(SessionTest, TheReferenceRunsFirstAndHandsOverItsParameters) {
  // In plan order the baseline comes last; a second model's cases stand between.
  const auto plan = plan_of({planned_case("m", "lora"), planned_case("other", "baseline"),
                             planned_case("m", "checkpointing"), planned_case("m", "baseline")});
  std::string file;
  runner.answer = [&](const WorkerOrder& order) {
    if (!order.job.write_parameters_path.empty()) {
      file = order.job.write_parameters_path;
      write_text(file, "parameters");
    }
    EXPECT_EQ(fs::exists(file), order.job.case_id.rfind("m/", 0) == 0);
    return FakeRunner::good(order);
  };
  const auto run = this->run(plan);
  EXPECT_EQ(observer.ids, (std::vector<std::string>{"m/baseline/cpu/fp32/b1", "m/lora/cpu/fp32/b1",
                                                    "m/checkpointing/cpu/fp32/b1",
                                                    "other/baseline/cpu/fp32/b1"}));
  EXPECT_EQ(run.cases[0].spec.id, "m/lora/cpu/fp32/b1");  // rows stay in plan order
  EXPECT_EQ(runner.orders[2].job.read_parameters_path, file);
  EXPECT_EQ(runner.orders[2].job.promise.reference_case, "m/baseline/cpu/fp32/b1");
  EXPECT_FALSE(fs::exists(file));                                   // no later case needs it
  EXPECT_TRUE(runner.orders[6].job.write_parameters_path.empty());  // `other` has nobody to compare
}

TEST_F(SessionTest, EachReferenceHandsOverToThoseHeldAgainstIt) {
  auto lora = planned_case("m", "lora", "cpu", "lora");
  lora.promise.promise = "different_problem";
  auto left_out = planned_case("m", "dora+checkpointing", "cpu", "dora");
  left_out.promise.tolerance = 1e-3;
  left_out.promise.relative_tolerance = 1e-2;
  left_out.promise.different_problem = true;
  const auto plan = plan_of({planned_case("m", "lora+checkpointing", "cpu", "lora"),
                             planned_case("m", "foreach-off"), lora, left_out,
                             planned_case("m", "lora+foreach-off", "cpu", "lora"),
                             planned_case("m", "baseline")});
  struct Memory {
    std::string id, write, read;
    std::vector<std::string> on_disk;
  };
  std::vector<Memory> seen;
  const auto name_of = [](const std::string& path) {
    return path.empty() ? "" : fs::path(path).parent_path().filename().string();
  };
  runner.answer = [&](const WorkerOrder& order) {
    if (order.job.mode != JobMode::kMemory) return FakeRunner::good(order);
    if (const auto& path = order.job.write_parameters_path; !path.empty()) write_text(path, "x");
    Memory one{order.job.case_id,
               name_of(order.job.write_parameters_path),
               name_of(order.job.read_parameters_path),
               {}};
    for (const auto& entry : fs::recursive_directory_iterator(scratch / "run"))
      if (entry.path().filename() == "parameters.tmp") one.on_disk.push_back(name_of(entry.path()));
    seen.push_back(one);
    return FakeRunner::good(order);
  };
  const auto run = this->run(plan);
  const std::vector<Memory> expected{
      {"m/lora/cpu/fp32/b1", "m-lora", "", {"m-lora"}},
      {"m/lora+checkpointing/cpu/fp32/b1", "", "m-lora", {"m-lora"}},
      {"m/lora+foreach-off/cpu/fp32/b1", "", "m-lora", {"m-lora"}},
      {"m/baseline/cpu/fp32/b1", "m-baseline", "", {"m-baseline"}},
      {"m/foreach-off/cpu/fp32/b1", "", "m-baseline", {"m-baseline"}},
      {"m/dora+checkpointing/cpu/fp32/b1", "", "", {}}};
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].id, expected[i].id);
    EXPECT_EQ(seen[i].write, expected[i].write) << seen[i].id;
    EXPECT_EQ(seen[i].read, expected[i].read) << seen[i].id;
    EXPECT_EQ(seen[i].on_disk, expected[i].on_disk) << seen[i].id;
  }
  const auto equivalence = [&](std::size_t index) { return *run.cases[index].equivalence; };
  EXPECT_EQ(equivalence(0).reference_case, "m/lora/cpu/fp32/b1");
  EXPECT_EQ(equivalence(1).reference_case, "m/baseline/cpu/fp32/b1");
  EXPECT_EQ(equivalence(2).reference_case, "");
  EXPECT_EQ(equivalence(2).reason, "the strategy trains a different problem");
  EXPECT_EQ(equivalence(3).reference_case, "");
  EXPECT_EQ(equivalence(3).reason, "the run has no case dora to compare with");
  EXPECT_EQ(equivalence(3).tolerance, 1e-3);
  EXPECT_EQ(equivalence(3).relative_tolerance, 1e-2);
  EXPECT_TRUE(equivalence(3).different_problem);
  EXPECT_FALSE(equivalence(1).different_problem);
  EXPECT_EQ(equivalence(5).reason, "this case is the reference");
}

TEST_F(SessionTest, AFailedReferenceIsNotComparedWith) {
  runner.answer = [](const WorkerOrder& order) {
    return order.job.case_id.find("baseline") != std::string::npos
               ? failure(Status::kOutOfMemory, "too large")
               : FakeRunner::good(order);
  };
  const auto run = this->run(plan_of({planned_case("m", "baseline"), planned_case("m", "x")}));
  EXPECT_EQ(run.cases[1].equivalence->verdict, "not_checked");
  EXPECT_EQ(run.cases[1].equivalence->reason, "the reference case ended out_of_memory");
}

TEST_F(SessionTest, WithoutDiskTheCheckIsSkippedWithItsReason) {
  auto options = this->options();
  options.parameters = [](const std::string&) { return std::int64_t{1} << 60; };
  const auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  const auto run = run_plan(plan, options, runner, observer);
  EXPECT_TRUE(runner.orders[0].job.write_parameters_path.empty());
  EXPECT_NE(run.cases[1].equivalence->reason.find("GiB of disk"), std::string::npos);
}

TEST_F(SessionTest, InterruptedInTheMemoryWorkerTheCaseStaysPending) {
  const auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.interrupted = order.job.case_id.find("/x/") != std::string::npos;
    return report;
  };
  auto run = this->run(plan);
  EXPECT_EQ(run.status, "interrupted");
  EXPECT_EQ(run.cases.size(), 1u);
  EXPECT_EQ(run.pending, std::vector<std::string>{"m/x/cpu/fp32/b1"});

  runner.answer = nullptr;
  runner.orders.clear();
  resume = true;
  run = this->run(plan);
  EXPECT_EQ(observer.kept, 1u);
  EXPECT_EQ(runner.orders.size(), 2u);
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.cases.size(), 2u);
}

TEST_F(SessionTest, InterruptedInTheThroughputWorkerTheMemoryIsKept) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.interrupted = order.job.mode == JobMode::kThroughput;
    return report;
  };
  auto run = this->run(plan);
  EXPECT_EQ(run.status, "interrupted");
  ASSERT_EQ(run.cases.size(), 1u);
  EXPECT_TRUE(run.cases[0].memory.has_value());
  EXPECT_EQ(run.pending.size(), 1u);

  runner.answer = nullptr;
  runner.orders.clear();
  resume = true;
  run = this->run(plan);
  ASSERT_EQ(runner.orders.size(), 1u);
  EXPECT_EQ(runner.orders[0].job.mode, JobMode::kThroughput);
  EXPECT_TRUE(run.cases[0].throughput.has_value());
  EXPECT_EQ(run.cases[0].throughput_reason, "");
  EXPECT_TRUE(run.pending.empty());
}

TEST_F(SessionTest, AFolderThatHoldsARunIsRefused) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  run(plan);
  const auto message = message_of<ConfigError>([&] { run(plan); });
  EXPECT_NE(message.find("holds a run already"), std::string::npos);
  EXPECT_NE(message.find("--resume"), std::string::npos);
  overwrite = true;
  write_text(scratch / "run/notes.txt", "mine");
  EXPECT_EQ(run(plan).cases.size(), 1u);
  EXPECT_TRUE(fs::exists(scratch / "run/notes.txt"));
}

TEST_F(SessionTest, ADifferentRunIsNotResumed) {
  run(plan_of({planned_case("m", "baseline")}));
  resume = true;
  auto message = message_of<ConfigError>([&] { run(plan_of({planned_case("n", "baseline")})); });
  EXPECT_NE(message.find("a different run"), std::string::npos);
  EXPECT_NE(message.find("it does not have n/baseline/cpu/fp32/b1"), std::string::npos);
  auto plan = plan_of({planned_case("m", "baseline")});
  plan.request.steps = 5;
  message = message_of<ConfigError>([&] { run(plan); });
  EXPECT_NE(message.find("steps = 3, this one 5"), std::string::npos);
}

TEST_F(SessionTest, ACutShortRunIsNotResumed) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  run(plan);
  fs::resize_file(scratch / "run/run.json", 100);
  resume = true;
  EXPECT_THROW(run(plan), RunFileError);
}

TEST_F(SessionTest, OneRunAFolder) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  const RunFolder other(scratch / "run");
  const auto message = message_of<ConfigError>([&] { run(plan); });
  EXPECT_NE(message.find("another peakbench is writing"), std::string::npos);
}

TEST_F(SessionTest, AFileInTheWayOfTheFolder) {
  write_text(scratch / "run", "a file");
  const auto message =
      message_of<ConfigError>([&] { run(plan_of({planned_case("m", "baseline")})); });
  EXPECT_NE(message.find("cannot make the folder"), std::string::npos);
  EXPECT_NE(message.find("--out"), std::string::npos);
}

TEST(Throughput, OneRepetitionIsKeptAsItIs) {
  auto one = throughput_of({5, 7});
  one.step_ns.median = 42;
  EXPECT_EQ(combine({one}, result::CaseSpec{}).step_ns.median, 42);
}

TEST(Host, TheBudgetIsWhatWasAskedOrWhatIsLeft) {
  const HostMemory memory{std::int64_t{16} << 30, std::int64_t{10} << 30};
  EXPECT_EQ(memory_budget(5, memory), 5);
  EXPECT_EQ(memory_budget(0, memory), (std::int64_t{10} << 30) - (std::int64_t{1280} << 20));
  EXPECT_EQ(resident_limit(std::int64_t{1} << 30, memory), std::int64_t{2} << 30);
  EXPECT_LT(resident_limit(std::int64_t{100} << 30, memory), std::int64_t{10} << 30);
  const HostMemory own = host_memory();
  EXPECT_GT(own.available_bytes, 0);
  EXPECT_LE(own.available_bytes, own.total_bytes);
}

TEST(DeviceEnvironment, OnlyEmulatedDevicesNeedOne) {
  EXPECT_TRUE(environment_for("cpu").empty());
  EXPECT_TRUE(environment_for("cuda:0").empty());
  EXPECT_TRUE(is_emulated("emulated:h100-80gb,memory=60GiB"));
  EXPECT_FALSE(is_emulated("cpu"));
}

}  // namespace
}  // namespace peakbench::launch
