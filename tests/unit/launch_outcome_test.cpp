// What is said of a worker's end, from the evidence alone; and the numbers that are decided before
// it starts.
#include <gtest/gtest.h>
#include <signal.h>

#include "launch/machine.h"
#include "launch/outcome.h"

namespace peakbench::launch {
namespace {

using records::Status;

constexpr std::int64_t kMiB = 1 << 20;

Evidence seen_in(const std::string& phase, std::int64_t step, std::int64_t steps) {
  Evidence evidence;
  evidence.last = records::Progress{phase, step, steps, 700, 900};
  return evidence;
}

Evidence with_result() {
  Evidence evidence;
  evidence.written = records::WorkerResult{};
  evidence.written->status = Status::kUnsupported;
  return evidence;
}

TEST(Outcome, ATimeoutSaysWhereItWas) {
  auto evidence = seen_in("forward", 1, 3);
  evidence.end.stopped = process::Stop::kTimeout;
  evidence.timeout_s = 60;
  EXPECT_EQ(outcome(evidence).status, Status::kTimeout);
  EXPECT_EQ(outcome(evidence).reason,
            "stopped after 60 s (--timeout); it was last seen in forward of step 2 of 3");
  evidence.last->steps = 0;
  EXPECT_EQ(outcome(evidence).reason,
            "stopped after 60 s (--timeout); it was last seen in forward");
  evidence.last.reset();
  EXPECT_EQ(outcome(evidence).reason,
            "stopped after 60 s (--timeout); it had not reported any progress");
}

// Its steps are its own, and what it printed says more than how it ended.
TEST(Outcome, AProgramsFailureHasItsLastLines) {
  Evidence evidence = with_result();
  evidence.is_program = true;
  evidence.log_tail = "a | b";
  evidence.written->reason = "the program ended with exit code 3";
  EXPECT_EQ(outcome(evidence).reason, "the program ended with exit code 3 [worker.log: a | b]");
  evidence.log_tail =
      "Traceback | peakbench: bench.py: step 2 of sgd raised ValueError: a | b (line 7)";
  EXPECT_EQ(outcome(evidence).reason, "bench.py: step 2 of sgd raised ValueError: a | b (line 7)");
  evidence.log_tail =
      "DistNetworkError: port: 29500, name: EADDRINUSE, message: address already in use";
  EXPECT_EQ(outcome(evidence).reason,
            "the port at which its processes meet was taken (address already in use): give the "
            "program another one, as torchrun's --master-port [worker.log: " +
                evidence.log_tail + "]");
  evidence.log_tail = "peakbench: bench.py: no model";
  EXPECT_EQ(outcome(evidence).reason, "bench.py: no model");
  evidence.log_tail = "a | b";
  evidence.written->status = Status::kOutOfMemory;
  EXPECT_EQ(outcome(evidence).reason, "the program ended with exit code 3") << "it says all";
  evidence.end.stopped = process::Stop::kTimeout;
  evidence.timeout_s = 60;
  EXPECT_EQ(outcome(evidence).status, Status::kTimeout);
  EXPECT_EQ(outcome(evidence).reason,
            "stopped after 60 s (timeout_s, or --timeout) [worker.log: a | b]");
}

TEST(Outcome, TooMuchResidentMemoryKeepsWhatWasSeen) {
  auto evidence = seen_in("backward", 2, 3);
  evidence.end.stopped = process::Stop::kMemory;
  evidence.rss_limit_bytes = 3 << 29;
  const auto found = outcome(evidence);
  EXPECT_EQ(found.status, Status::kOutOfMemory);
  EXPECT_EQ(found.reason,
            "the worker was stopped when its resident memory passed 1.50 GiB; it was last seen in "
            "backward of step 3 of 3");
  EXPECT_EQ(found.out_of_memory->limit_bytes, 3 << 29);
  EXPECT_EQ(found.out_of_memory->allocated_bytes, 700);
  EXPECT_EQ(found.out_of_memory->phase, "backward");
  EXPECT_EQ(found.out_of_memory->step, 2);
}

TEST(Outcome, AResultCountsWhereTheWorkerEndedWell) {
  auto evidence = with_result();
  EXPECT_EQ(outcome(evidence).status, Status::kUnsupported);
  evidence.end.exit_code = 1;
  EXPECT_EQ(outcome(evidence).status, Status::kCrashed);
  EXPECT_EQ(outcome(evidence).reason,
            "the worker exited with code 1 after it had written its result");
  evidence.end.exit_code = 0;
  evidence.end.signal = SIGSEGV;
  EXPECT_EQ(outcome(evidence).reason,
            "the worker was killed by SIGSEGV (segmentation fault); it had not reported any "
            "progress");
}

TEST(Outcome, OnlyAKillIsTheKernels) {
  auto evidence = seen_in("build", 0, 0);
  evidence.kernel_ran_out = true;
  evidence.end.signal = SIGSEGV;
  EXPECT_EQ(outcome(evidence).status, Status::kCrashed) << "another process was out of memory";
  evidence.end.signal = SIGKILL;
  EXPECT_EQ(outcome(evidence).status, Status::kOutOfMemory);
}

// Beside a card this machine's memory is not the device's.
TEST(Outcome, TheMachinesMemoryIsNotACards) {
  auto evidence = seen_in("build", 0, 0);
  evidence.memory_is_device = false;
  evidence.kernel_ran_out = true;
  evidence.end.signal = SIGKILL;
  EXPECT_EQ(outcome(evidence).status, Status::kHostFailure);
  EXPECT_EQ(outcome(evidence).reason,
            "the kernel ended the worker because the machine's memory ran out; it was last seen in "
            "build; free memory");
  evidence.end.stopped = process::Stop::kMemory;
  evidence.rss_limit_bytes = 3 << 29;
  EXPECT_EQ(outcome(evidence).status, Status::kHostFailure);
  EXPECT_EQ(outcome(evidence).reason,
            "the worker was stopped when it took 1.50 GiB of this machine's memory; it was last "
            "seen in build; free memory, or raise --memory-limit");
  EXPECT_FALSE(outcome(evidence).out_of_memory.has_value());
}

TEST(Outcome, AWorkerThatCouldNotBeStarted) {
  Evidence evidence;
  evidence.end.start_error = "cannot start a process: Resource temporarily unavailable";
  EXPECT_EQ(outcome(evidence).status, Status::kHostFailure);
  EXPECT_EQ(outcome(evidence).reason, evidence.end.start_error);
}

TEST(Outcome, AWorkersWordAndItsExitCodeTogether) {
  Evidence evidence;
  evidence.end.exit_code = records::kHostFailureExit;
  EXPECT_EQ(outcome(evidence).status, Status::kCrashed);
  evidence.host_failure = "the disk is full\n";
  EXPECT_EQ(outcome(evidence).status, Status::kHostFailure);
  EXPECT_EQ(outcome(evidence).reason, "the disk is full ");
  evidence.end.exit_code = 1;
  EXPECT_EQ(outcome(evidence).status, Status::kCrashed);
}

TEST(Outcome, SignalsThatNoCaseSendsItself) {
  for (const int number : {SIGKILL, SIGTERM, SIGXFSZ, SIGXCPU}) {
    auto evidence = seen_in("forward", 0, 3);
    evidence.end.signal = number;
    EXPECT_EQ(outcome(evidence).status, Status::kHostFailure) << number;
    EXPECT_EQ(outcome(evidence).reason.find("the worker was killed by " + signal_name(number)), 0u);
  }
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGILL}) {
    Evidence evidence;
    evidence.end.signal = number;
    EXPECT_EQ(outcome(evidence).status, Status::kCrashed) << number;
  }
}

TEST(Outcome, ASignalSaysWhereTheWorkerWas) {
  auto evidence = seen_in("forward", 0, 3);
  evidence.end.signal = SIGSEGV;
  const auto killed = std::string("the worker was killed by SIGSEGV (segmentation fault)");
  evidence.crash = crash_site_from_json(nlohmann::json::parse(
      R"({"path": "/my/sgd.so", "plugin": "my-sgd", "call": "update", "place": "step 2 of 3, forward",
          "frames": ["sgd.so+0x12 _ZN3Sgd6updateEv", "sgd.so+0x34 no_mangling", "libc.so.6+0x56"]})"));
  EXPECT_EQ(outcome(evidence).reason,
            killed +
                " in /my/sgd.so: my-sgd, in update, step 2 of 3, forward; at Sgd::update() "
                "(sgd.so+0x12), from no_mangling (sgd.so+0x34), from libc.so.6+0x56");
  evidence.crash = CrashSite{"", "", "", "step 2 of 3, backward", {}};
  EXPECT_EQ(outcome(evidence).reason, killed + " in step 2 of 3, backward");
  evidence.crash = CrashSite{};
  EXPECT_EQ(outcome(evidence).reason, killed + "; it was last seen in forward of step 1 of 3");
}

// Anybody who has the worker's descriptors can write such a line.
TEST(Outcome, ACrashSiteIsHeldToItsForm) {
  using nlohmann::json;
  json site{{"path", std::string(100'000, 'x')}, {"plugin", "p"}, {"call", ""}, {"place", ""}};
  EXPECT_ANY_THROW(crash_site_from_json(site));  // no frames
  site["frames"] = std::vector<std::string>(1000, std::string(100'000, 'y'));
  EXPECT_EQ(crash_site_from_json(site).frames.size(), 4u);
  EXPECT_LT(in_words(crash_site_from_json(site)).size(), 10'000u);
  site["frames"] = {7};
  EXPECT_ANY_THROW(crash_site_from_json(site));
}

TEST(Outcome, TheLogsEndIsWhatCameBeforeABacktrace) {
  EXPECT_EQ(log_tail("what(): no\n\npeakbench-worker: ended by SIGABRT in p.so\nBacktrace\n  a\n"),
            "what(): no");
}

TEST(Outcome, WhatEndedTheProcessOverItsHead) {
  Evidence evidence;
  evidence.end.exit_code = 127;
  evidence.log_tail =
      "worker: error while loading shared libraries: libtorch_cpu.so: failed to map";
  EXPECT_EQ(outcome(evidence).status, Status::kHostFailure);
  EXPECT_EQ(outcome(evidence).reason,
            "the worker could not continue; it had not reported any progress [worker.log: " +
                evidence.log_tail + "]");
  evidence.log_tail = "something else";
  EXPECT_EQ(outcome(evidence).status, Status::kCrashed);
}

TEST(Outcome, ACrashQuotesTheLog) {
  Evidence evidence;
  evidence.end.exit_code = 3;
  evidence.log_tail = "first | second";
  EXPECT_EQ(outcome(evidence).reason,
            "the worker exited with code 3 without a result; it had not reported any progress "
            "[worker.log: first | second]");
  evidence.read_problem = "no JSON";
  EXPECT_EQ(outcome(evidence).reason,
            "the worker's result cannot be read: no JSON [worker.log: first | second]");
}

TEST(Signals, AreNamedAsTheShellDoes) {
  EXPECT_EQ(signal_name(SIGABRT), "SIGABRT (aborted)");
  EXPECT_EQ(signal_name(1000), "signal 1000");
}

TEST(LogTail, IsTheLastLinesWithWords) {
  EXPECT_EQ(log_tail("1\n2\n\n3\n \t\r\n4\n5\n6\n7\n"), "2 | 3 | 4 | 5 | 6 | 7");
  EXPECT_EQ(log_tail(""), "");
}

TEST(LogTail, IsTheProcessesOwnWordsUnderTorchrun) {
  EXPECT_EQ(log_tail("Traceback (most recent call last):\nValueError: no such batch\n"
                     "W1126 01:59:31.512000 26248 torch/distributed/elastic/multiprocessing/"
                     "api.py:1012] Sending process 26253 closing signal SIGTERM\n"
                     "E1126 01:59:31.546000 26248 torch/distributed/elastic/multiprocessing/"
                     "api.py:986] failed (exitcode: 1)\nTraceback (most recent call last):\n"
                     "ChildFailedError:\n====\n"),
            "Traceback (most recent call last): | ValueError: no such batch");
}

TEST(LogTail, IsShort) {
  EXPECT_EQ(log_tail(std::string(800, 'a')), std::string(800, 'a'));
  EXPECT_EQ(log_tail("b" + std::string(800, 'a')), "..." + std::string(800, 'a'));
}

// Half of what is left, where that is less than what worker and machine need for themselves.
TEST(Host, ASmallMachinesBudget) {
  EXPECT_EQ(memory_budget(0, {4096 * kMiB, 1000 * kMiB}), 500 * kMiB);
  EXPECT_EQ(memory_budget(0, {4096 * kMiB, 0}), kMiB);
  EXPECT_EQ(resident_limit(2000 * kMiB, {4096 * kMiB, 1000 * kMiB}), 744 * kMiB);
  EXPECT_EQ(resident_limit(2000 * kMiB, {4096 * kMiB, 300 * kMiB}), 256 * kMiB);
  EXPECT_EQ(resident_limit(100 * kMiB, {16384 * kMiB, 8192 * kMiB}), 1124 * kMiB);
}

}  // namespace
}  // namespace peakbench::launch
