// Workers that try to escape: time and memory limits hold, nothing of them stays, and what they say
// stays small.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>

#include "launch/interrupt.h"
#include "worker_fixture.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using records::Status;
using namespace peakbench::testing;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kSoon =
    std::chrono::seconds(20);  // a timeout, the grace after it, and a busy machine

class ContainedTest : public WorkerTest {
 protected:
  ContainedTest() { timeout = std::chrono::seconds(1); }

  // The process that fake_worker.py has told of in its log; a zombie that waits for init has ended.
  bool child_runs() {
    const auto log = read_text(scratch / "worker.log");
    const auto at = log.find("child ");
    if (at == std::string::npos) return ADD_FAILURE() << "no child in: " << log, false;
    std::ifstream stat("/proc/" + std::to_string(std::stoi(log.substr(at + 6))) + "/stat");
    std::string pid, name, state;
    return stat >> pid >> name >> state && state != "Z";
  }

  void expect_timeout(const std::string& behaviour) {
    const auto start = steady_clock::now();
    const auto report = run(behaviour);
    EXPECT_EQ(report.result.status, Status::kTimeout) << behaviour << ": " << report.result.reason;
    EXPECT_LT(steady_clock::now() - start, kSoon) << behaviour;
  }
};

TEST_P(ContainedTest, AFloodOfProgressDoesNotStopTheClock) {
  for (const std::string how : {"flood_lines", "flood_without_newline"}) expect_timeout(how);
  EXPECT_LT(progress.size(), 20'000u) << "what is handed on is bounded by time, not by the plugin";
}

TEST_P(ContainedTest, AFloodOfProgressDoesNotStopTheFirstInterrupt) {
  timeout = std::chrono::seconds(60);
  const InterruptScope scope;
  std::thread later([] {
    std::this_thread::sleep_for(milliseconds(500));
    kill(getpid(), SIGINT);
  });
  const auto start = steady_clock::now();
  EXPECT_TRUE(run("flood_lines").interrupted);
  EXPECT_LT(steady_clock::now() - start, kSoon);
  later.join();
}

TEST_P(ContainedTest, AListenerThatTakesLongDoesNotStopTheClock) {
  const auto start = steady_clock::now();
  slow_listener = milliseconds(30);
  EXPECT_EQ(run("flood_lines").result.status, Status::kTimeout);
  EXPECT_LT(steady_clock::now() - start, kSoon);
}

TEST_P(ContainedTest, JunkOnTheProgressPipeCostsNothing) {
  timeout = std::chrono::seconds(60);
  EXPECT_EQ(run("long_line").result.status, Status::kOk);
  ASSERT_FALSE(progress.empty()) << "what comes after the junk is read";
  EXPECT_EQ(progress.back().phase, "optimizer_step");
  EXPECT_EQ(run("close_progress").result.status, Status::kOk);
  EXPECT_EQ(run("close_output").result.status, Status::kOk);
}

// A worker that ends as it should is ok, whatever a plugin's thread wrote beside it meanwhile.
TEST_P(ContainedTest, AFloodOfProgressBesideAGoodResultIsNoFault) {
  timeout = std::chrono::seconds(60);
  const auto report = run("flood_beside");
  EXPECT_EQ(report.result.status, Status::kOk) << report.result.reason;
  EXPECT_EQ(report.result.memory->peak_allocated_bytes,
            run("ok").result.memory->peak_allocated_bytes);
  EXPECT_FALSE(progress.empty()) << "good lines among the others are heard";
  EXPECT_LT(progress.size(), 20'000u);
}

TEST_P(ContainedTest, WhatProgressSaysIsNoCommandToATerminal) {
  timeout = std::chrono::seconds(60);
  EXPECT_EQ(run("odd_progress").result.status, Status::kOk);
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress.back().phase.find('\x1b'), std::string::npos);
}

TEST_P(ContainedTest, AStoppedWorkerTimesOut) { expect_timeout("stop"); }

TEST_P(ContainedTest, AWorkerInAnotherGroupTimesOut) { expect_timeout("other_group"); }

TEST_P(ContainedTest, WhoLeavesTheSessionIsEndedToo) {
  timeout = std::chrono::seconds(60);
  ASSERT_EQ(run("daemon").result.status, Status::kOk);
  EXPECT_FALSE(child_runs());
}

TEST_P(ContainedTest, WhoLeavesTheSessionIsEndedAfterATimeout) {
  expect_timeout("daemon_and_hang");
  EXPECT_FALSE(child_runs());
}

TEST_P(ContainedTest, NoZombieOfOursStays) {
  timeout = std::chrono::seconds(60);
  run("daemon");
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_P(ContainedTest, AWorkerThatKillsItsParent) {
  timeout = std::chrono::seconds(60);
  const auto start = steady_clock::now();
  const auto report = run("kill_parent");
  EXPECT_EQ(report.result.status, Status::kHostFailure) << "it cannot be told who did";
  EXPECT_LT(steady_clock::now() - start, kSoon);
}

TEST_P(ContainedTest, WhatItsChildrenHoldCounts) {
  timeout = std::chrono::seconds(60);
  rss_limit = 400 << 20;
  const auto report = run("child_eats_memory");
  EXPECT_EQ(report.result.status, Status::kOutOfMemory);
  EXPECT_TRUE(contains(report.result.reason, "resident memory passed 0.39 GiB"));
}

class ServerGoneTest : public WorkerTest {};

// What it forked goes on without it, and what it forks is held by nobody else.
TEST_P(ServerGoneTest, AWorkerOutlivesTheServerThatForkedIt) {
  process::ForkServer server({PEAKBENCH_FORKING_WORKER, "--serve"}, {});
  write_text(
      scratch / "job.json",
      R"({"mode": "memory", "model": {"selection": {"options": {"behaviour": "slow"}}, "options": {}},
             "strategies": [], "steps": 1, "warmup": 0, "device": "cpu", "batch_size": 1,
             "case_id": "m", "promise": {}, "write_parameters_path": "", "read_parameters_path": "",
             "result_path": ")" +
          (scratch / "result.json") + "\"}");
  process::ProcessSpec spec;
  spec.arguments = {PEAKBENCH_FORKING_WORKER, scratch / "job.json"};
  spec.log_path = log_path;
  int lines = 0;
  const auto end = process::run_process(
      spec,
      [&](const std::string&) {
        if (++lines == 1) kill(server.pid(), SIGKILL);
      },
      [] { return false; }, &server);
  EXPECT_EQ(end.exit_code, 0) << end.last_words;
  EXPECT_EQ(end.signal, 0);
  EXPECT_GT(lines, 3);
  EXPECT_TRUE(fs::exists(scratch / "result.json"));
  EXPECT_EQ(end.server_problem, "");
}

INSTANTIATE_TEST_SUITE_P(Way, ServerGoneTest, ::testing::Values(Way::kForked), name_of);

TEST_P(ContainedTest, AFloodOfOutputIsCutInTheMiddle) {
  timeout = std::chrono::seconds(60);
  const auto report = run("flood_log");
  EXPECT_TRUE(contains(report.result.reason, "SIGABRT"));
  EXPECT_TRUE(contains(report.result.reason, "the last words"));
  EXPECT_LT(fs::file_size(scratch / "worker.log"), 17u << 20);
  const auto log = read_text(scratch / "worker.log");
  EXPECT_TRUE(contains(log.substr(0, 200), "the first words"));
  EXPECT_TRUE(contains(log.substr(log.size() - 200), "the last words"));
  const auto at = log.find(" bytes left out");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(std::stoll(log.substr(log.rfind('[', at) + 1)), 40 << 20);
}

TEST_P(ContainedTest, ManyWorkersOfACaseShareTheLog) {
  timeout = std::chrono::seconds(60);
  for (int i = 0; i < 3; ++i) run("flood_log");
  EXPECT_LT(fs::file_size(scratch / "worker.log"), 17u << 20);
  EXPECT_TRUE(contains(run("segfault").result.reason, "[worker.log: about to segfault]"));
}

TEST_P(ContainedTest, ALogThatCannotBeWrittenIsSaidAndEndsNothing) {
  timeout = std::chrono::seconds(60);
  log_path = "/dev/full";
  const auto good = run("close_progress");
  EXPECT_EQ(good.result.status, Status::kOk);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(contains(warnings[0], "/dev/full: cannot write: No space left on device"));
  EXPECT_TRUE(contains(run("segfault").result.reason, "about to segfault"));
}

TEST_P(ContainedTest, TextsAreCutAndStayUtf8) {
  timeout = std::chrono::seconds(60);
  const auto result = run("wordy_result").result;
  EXPECT_EQ(result.status, Status::kUnsupported);
  EXPECT_LT(result.reason.size(), 5000u);
  EXPECT_TRUE(contains(result.reason, "no such layers \xE2\x82\xAC"));
  EXPECT_TRUE(contains(result.reason, " bytes left out)"));
  EXPECT_NO_THROW(nlohmann::json(result.reason).dump());
  EXPECT_LT(result.environment.at("card").get<std::string>().size(), 5000u);
}

TEST_P(ContainedTest, ResultFilesThatAreNone) {
  timeout = std::chrono::seconds(20);
  const auto start = steady_clock::now();
  const auto reason = [&](const std::string& how) {
    const auto result = run(how).result;
    EXPECT_EQ(result.status, Status::kCrashed) << how;
    std::error_code ignored;
    fs::remove_all(scratch / "memory.result.json", ignored);
    return result.reason;
  };
  EXPECT_TRUE(
      contains(reason("sparse_result"), "holds 1073741824 bytes, more than a result takes"));
  EXPECT_TRUE(contains(reason("deep_result"), "more than 100 levels"));
  EXPECT_TRUE(contains(reason("pipe_as_result"), "is no file"));
  EXPECT_TRUE(contains(reason("folder_as_result"), "is no file"));
  EXPECT_TRUE(contains(reason("link_as_result"), "is no file"));
  EXPECT_TRUE(contains(reason("socket_as_result"), "is no file"));
  EXPECT_LT(steady_clock::now() - start, kSoon);
}

TEST_P(ContainedTest, AResultThatCannotBeRemovedIsNoBugOfOurs) {
  fs::create_directories(scratch / "memory.result.json/more");
  const auto report = run("ok");
  EXPECT_EQ(report.result.status, Status::kCrashed);
  EXPECT_TRUE(contains(report.result.reason, "is no file"));
  EXPECT_TRUE(fs::exists(scratch / "memory.result.json/more"));
}

TEST_P(ContainedTest, APipeInPlaceOfTheJobIsReplaced) {
  mkfifo((scratch / "memory.job.json").c_str(), 0644);
  EXPECT_EQ(run("ok").result.status, Status::kOk);
}

TEST_P(ContainedTest, AWorkerThatDeletesItsFolder) {
  timeout = std::chrono::seconds(60);
  const auto report = run("delete_folder");
  EXPECT_EQ(report.result.status, Status::kCrashed);
  EXPECT_TRUE(contains(report.result.reason, "without a result"));
}

TEST_P(ContainedTest, AListenerThatThrowsLeavesNothingRunning) {
  const auto left_running = [&] {  // processes that have this test's job as an argument
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string words(std::istreambuf_iterator<char>(file), {});
      if (words.find(scratch.path()) != std::string::npos) ++count;
    }
    return count;
  };
  Listener listener;
  listener.progress = [](const records::Progress&) { throw std::runtime_error("no more"); };
  ProcessRunner runner;
  EXPECT_THROW(runner.run(worker("hang"), listener), std::runtime_error);
  for (int i = 0; i < 200 && left_running() > 0; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(left_running(), 0);
}

INSTANTIATE_TEST_SUITE_P(Way, ContainedTest, ::testing::Values(Way::kFresh, Way::kForked), name_of);

}  // namespace
}  // namespace peakbench::launch
