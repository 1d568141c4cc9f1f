// Real processes: a worker that behaves as it is told (tests/support/fake_worker.py).
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/errors.h"
#include "launch/interrupt.h"
#include "launch/outcome.h"
#include "support/fake_plan.h"
#include "support/scratch.h"
#include "worker_fixture.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using records::Status;
using namespace peakbench::testing;
using std::chrono::steady_clock;

TEST_P(WorkerTest, AGoodWorkersResultIsTaken) {
  const auto report = run("ok");
  EXPECT_EQ(report.result.status, Status::kOk);
  EXPECT_EQ(report.result.memory->peak_allocated_bytes, 110 << 20);
  EXPECT_GT(report.peak_rss_bytes, 1 << 20);
  EXPECT_GT(report.wall_ns, 0);
  ASSERT_EQ(progress.size(), 7u);  // load, and three phases of each of two steps
  EXPECT_EQ(progress.back().phase, "optimizer_step");
  EXPECT_EQ(progress.back().step, 1);
  EXPECT_GT(ticks, 0);
  EXPECT_FALSE(fs::exists(scratch / "memory.result.json"));
}

TEST_P(WorkerTest, ASignalIsNamedAndTheLogQuoted) {
  const auto report = run("segfault");
  EXPECT_EQ(report.result.status, Status::kCrashed);
  EXPECT_TRUE(contains(report.result.reason, "killed by SIGSEGV (segmentation fault)"));
  EXPECT_TRUE(contains(report.result.reason, "last seen in optimizer_step of step 2 of 2"));
  EXPECT_TRUE(contains(report.result.reason, "[worker.log: about to segfault]"));
  EXPECT_TRUE(contains(run("abort").result.reason, "SIGABRT"));
}

TEST_P(WorkerTest, KilledFromOutside) {
  const auto report = run("kill");
  EXPECT_EQ(report.result.status, Status::kHostFailure);
  EXPECT_TRUE(contains(report.result.reason, "killed by SIGKILL (killed)"));
  EXPECT_TRUE(contains(report.result.reason, "when memory runs out"));
}

TEST_P(WorkerTest, AHangEndsInATimeout) {
  timeout = std::chrono::seconds(1);
  const auto start = steady_clock::now();
  const auto report = run("hang");
  EXPECT_EQ(report.result.status, Status::kTimeout);
  EXPECT_TRUE(contains(report.result.reason, "stopped after 1 s (--timeout)"));
  EXPECT_LT(steady_clock::now() - start, std::chrono::seconds(3));
}

TEST_P(WorkerTest, AHangThatIgnoresTheTermIsKilled) {
  timeout = std::chrono::seconds(1);
  EXPECT_EQ(run("hang_hard").result.status, Status::kTimeout);
}

TEST_P(WorkerTest, ResultsThatCannotBeRead) {
  for (const std::string how : {"garbage", "truncated"}) {
    const auto report = run(how);
    EXPECT_EQ(report.result.status, Status::kCrashed) << how;
    EXPECT_TRUE(contains(report.result.reason, "result cannot be read: memory.result.json holds"));
    EXPECT_NO_THROW(nlohmann::json(report.result.reason).dump());
  }
}

TEST_P(WorkerTest, NoResult) {
  EXPECT_TRUE(contains(run("no_result").result.reason, "exited with code 0 without a result"));
  EXPECT_TRUE(contains(run("exit").result.reason, "exited with code 3 without a result"));
}

TEST_P(WorkerTest, ACrashAfterTheResultKeepsTheFigures) {
  const auto report = run("crash_after_result");
  EXPECT_EQ(report.result.status, Status::kCrashed);
  EXPECT_TRUE(report.result.memory.has_value());
  EXPECT_TRUE(contains(report.result.reason, "exited with code 5 after it had written"));
}

TEST_P(WorkerTest, OutOfMemoryIsAnOutcome) {
  const auto report = run("out_of_memory");
  EXPECT_EQ(report.result.status, Status::kOutOfMemory);
  EXPECT_EQ(report.result.out_of_memory->limit_bytes, std::int64_t{8} << 30);
}

TEST_P(WorkerTest, TooMuchResidentMemoryEndsIt) {
  rss_limit = 300 << 20;
  const auto report = run("eat_memory");
  EXPECT_EQ(report.result.status, Status::kOutOfMemory);
  EXPECT_TRUE(contains(report.result.reason, "resident memory passed 0.29 GiB"));
  EXPECT_EQ(report.result.out_of_memory->limit_bytes, rss_limit);
  EXPECT_LT(report.peak_rss_bytes, std::int64_t{1} << 30);
}

TEST_P(WorkerTest, WhatALogHoldsDoesNotSpoilTheResult) {
  const auto reason = run("bad_bytes").result.reason;
  EXPECT_EQ(reason.find('\x1b'), std::string::npos);
  EXPECT_NO_THROW(nlohmann::json(reason).dump());
}

TEST_P(WorkerTest, WhatAWorkerLeavesBehindIsEnded) {
  ASSERT_EQ(run("leave_child").result.status, Status::kOk);
  const auto log = read_text(scratch / "worker.log");
  const pid_t child = std::stoi(log.substr(log.find("child ") + 6));
  const auto running = [&] {  // a zombie that waits for init has ended
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string pid, name, state;
    return stat >> pid >> name >> state && state != "Z";
  };
  for (int i = 0; i < 100 && running(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(running());
}

TEST_P(WorkerTest, OneThatCannotBeStartedIsAFailureOfTheMachine) {
  fs::create_directories(log_path);
  const auto report = run("ok");
  EXPECT_EQ(report.result.status, Status::kHostFailure);
  EXPECT_TRUE(contains(report.result.reason, "worker.log: cannot write"));
}

TEST_P(WorkerTest, CtrlCStopsTheWorker) {
  const InterruptScope scope;
  EXPECT_FALSE(interrupted());
  raise(SIGINT);
  EXPECT_TRUE(interrupted());
  EXPECT_TRUE(run("hang").interrupted);
}

TEST_P(WorkerTest, ASignalToAllOfUsIsAnInterruptThoughTheWorkerEndsFirst) {
  const InterruptScope scope;
  std::jthread late([&] {
    while (read_text(scratch / "worker.log").find("about to") == std::string::npos)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    kill(getpid(), SIGTERM);
  });
  EXPECT_TRUE(run("terminate").interrupted);
}

TEST_P(WorkerTest, ASignalToTheWorkerAloneIsNoInterrupt) {
  const InterruptScope scope;
  const auto report = run("terminate");
  EXPECT_FALSE(report.interrupted);
  EXPECT_TRUE(contains(report.result.reason, "killed by SIGTERM (terminated)"));
}

TEST_P(WorkerTest, ASecondCtrlCEndsAtOnce) {
  EXPECT_EXIT(
      {
        const InterruptScope scope;
        raise(SIGINT);
        raise(SIGINT);
      },
      ::testing::ExitedWithCode(130), "");
}

INSTANTIATE_TEST_SUITE_P(Way, WorkerTest, ::testing::Values(Way::kFresh, Way::kForked), name_of);

TEST(Worker, AMissingProgramIsTheUsersMatter) {
  planning::Worker worker;
  worker.program = "/nowhere/peakbench-worker";
  auto plan = plan_of({planned_case("m", "baseline")});
  plan.cases[0].worker = std::make_shared<const planning::Worker>(worker);
  const auto message = message_of<ConfigError>([&] { ProcessRunner(plan, ""); });
  EXPECT_TRUE(contains(message, "no worker program: /nowhere/peakbench-worker"));
}

TEST(Worker, AProgramThatIsNoneCannotBeStarted) {
  const ScratchFolder scratch;
  write_text(scratch / "worker", "");
  fs::permissions(scratch / "worker", fs::perms::owner_all);
  process::ProcessSpec spec;
  spec.arguments = {scratch / "worker"};
  spec.log_path = scratch / "log";
  const auto end = process::run_process(
      spec, [](const std::string&) {}, [] { return false; });
  EXPECT_TRUE(contains(end.start_error, "cannot start"));
}

TEST(Outcome, TheKernelsKillIsOutOfMemory) {
  Evidence evidence;
  evidence.end.signal = SIGKILL;
  evidence.kernel_ran_out = true;
  EXPECT_EQ(outcome(evidence).status, Status::kOutOfMemory);
  evidence.kernel_ran_out = false;
  EXPECT_EQ(outcome(evidence).status, Status::kHostFailure);
}

}  // namespace
}  // namespace peakbench::launch
