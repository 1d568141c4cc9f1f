// Work on several numbers at a time: what is reported, on which thread, and how it ends.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "launch/interrupt.h"
#include "launch/machine.h"
#include "launch/run_book.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "launch/thread_pool.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::launch {
namespace {

using namespace peakbench::testing;
using records::Status;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kCard = "emulated:h100-80gb";

// Notes what is reported, and that it is reported on the thread of the caller.
struct Reported {
  std::vector<std::size_t> started, ended;
  std::vector<std::string> warnings;
  std::size_t progress = 0, ticks = 0;
  std::thread::id thread = std::this_thread::get_id();

  Callbacks callbacks() {
    const auto here = [this] { EXPECT_EQ(std::this_thread::get_id(), thread); };
    return {[=, this](std::size_t index) { here(), started.push_back(index); },
            [=, this](std::size_t, const records::Progress&) { here(), ++progress; },
            [=, this](const std::string& text) { here(), warnings.push_back(text); },
            [=, this](std::size_t index) { here(), ended.push_back(index); },
            [=, this] { here(), ++ticks; }};
  }
};

TEST(ThreadPool, AsManyAtATimeAsAskedFor) {
  std::atomic<int> at_work{0};
  std::atomic<bool> too_many{false};
  std::barrier three(3);  // passed by three at a time, or by none
  Reported reported;
  run_each(
      21, 3,
      [&](std::size_t, const Listener& listener) {
        if (++at_work > 3) too_many = true;
        listener.progress({});
        listener.warn("w");
        three.arrive_and_wait();
        --at_work;
      },
      reported.callbacks());
  EXPECT_FALSE(too_many);
  EXPECT_EQ(std::set(reported.ended.begin(), reported.ended.end()).size(), 21u);
  EXPECT_EQ(reported.progress, 21u);
  EXPECT_EQ(reported.warnings.size(), 21u);
  EXPECT_GT(reported.ticks, 0u);
}

TEST(ThreadPool, InOrder) {
  Reported reported;
  run_each(
      20'000, 4, [](std::size_t, const Listener&) {}, reported.callbacks());
  EXPECT_EQ(reported.started.size(), 20'000u);
  EXPECT_TRUE(std::ranges::is_sorted(reported.started));
}

TEST(ThreadPool, WhatIsThrownEndsItAndIsThrownAgain) {
  for (const bool in_worker : {true, false}) {
    std::atomic<int> begun{0};
    Reported reported;
    auto callbacks = reported.callbacks();
    if (!in_worker) callbacks.ended = [](std::size_t) { throw std::runtime_error("bad"); };
    const auto work = [&](std::size_t, const Listener&) {
      ++begun;
      std::this_thread::sleep_for(milliseconds(20));
      if (in_worker) throw std::runtime_error("bad");
    };
    EXPECT_THROW(run_each(100, 2, work, callbacks), std::runtime_error);
    EXPECT_LT(begun, 10);
  }
}

TEST(ThreadPool, NoneIsBegunAfterAnInterrupt) {
  const InterruptScope scope;
  Reported reported;
  run_each(
      100, 2,
      [](std::size_t index, const Listener&) {
        if (index == 3) kill(getpid(), SIGINT);
        std::this_thread::sleep_for(milliseconds(20));
      },
      reported.callbacks());
  EXPECT_LT(reported.started.size(), 10u);
  EXPECT_EQ(reported.started.size(), reported.ended.size());
}

TEST(ThreadPool, ALaneIsInOrderAndOneAtATime) {
  std::atomic<int> at_work[2] = {0, 0}, most[2] = {0, 0};
  Reported reported;
  run_in_lanes(
      {{0, 2, 4, 6}, {1, 3, 5}}, 4,
      [&](std::size_t index, const Listener&) {
        auto& lane = at_work[index % 2];
        most[index % 2] = std::max<int>(most[index % 2], ++lane);
        std::this_thread::sleep_for(milliseconds(5));
        --lane;
      },
      reported.callbacks());
  EXPECT_EQ(most[0], 1);
  EXPECT_EQ(most[1], 1);
  for (const std::size_t parity : {0, 1}) {
    auto lane = reported.started;
    std::erase_if(lane, [&](std::size_t index) { return index % 2 != parity; });
    EXPECT_EQ(lane, parity == 0 ? (std::vector<std::size_t>{0, 2, 4, 6})
                                : (std::vector<std::size_t>{1, 3, 5}));
  }
}

TEST(ThreadPool, NothingToDo) { run_each(0, 4, {}, Reported{}.callbacks()); }

TEST(ThreadPool, ThereIsAProcessor) { EXPECT_GE(usable_cores(), 1u); }

TEST(WritePace, ALargeRunIsWrittenForATenthOfTheTime) {
  using Clock = WritePace::Clock;
  WritePace pace;
  const Clock::time_point begin{seconds(1000)};
  EXPECT_TRUE(pace.due(1000, begin));
  pace.wrote(begin, begin + milliseconds(10));
  EXPECT_TRUE(pace.due(100, begin + milliseconds(10))) << "a small run: after every worker";
  EXPECT_FALSE(pace.due(101, begin + milliseconds(10)));
  EXPECT_FALSE(pace.due(101, begin + milliseconds(99)));
  EXPECT_TRUE(pace.due(101, begin + milliseconds(100)));
}

// A runner that several threads may use. The first case takes longest.
class SlowRunner : public Runner {
 public:
  WorkerReport run(const WorkerOrder& order, const Listener& listener) override {
    listener.progress({.phase = "forward", .step = 0, .steps = 3});
    {
      const std::lock_guard lock(mutex);
      const int now = ++at_work;
      most = std::max(most, now);
      if (order.job.device == "cpu") beside_cpu = std::max(beside_cpu, now);
      orders.push_back(order.job.case_id);
    }
    const bool first = order.job.case_id.starts_with("m0/");
    std::this_thread::sleep_for(milliseconds(first ? 150 : 10));
    for (int i = 0; i < 1000 && together > most_now(); ++i)
      std::this_thread::sleep_for(milliseconds(10));
    --at_work;
    auto report = FakeRunner::good(order);
    if (answer) answer(order, report);
    return report;
  }

  int most_now() {
    const std::lock_guard lock(mutex);
    return most;
  }

  std::mutex mutex;
  std::atomic<int> at_work{0};
  int together = 0;  // none ends before so many were at work
  int most = 0, beside_cpu = 0;
  std::vector<std::string> orders;
  std::function<void(const WorkerOrder&, WorkerReport&)> answer;
};

class Rows : public RunListener {
 public:
  void run_started(std::size_t to_run, std::size_t) override { started = to_run; }
  void worker_started(const Turn& turn) override { turns.push_back(turn); }
  void worker_progress(std::size_t place, const records::Progress&) override {
    progress.insert(place);
  }
  void case_ended(std::size_t place, const records::CaseResult& result) override {
    rows.push_back(place);
    ids.push_back(result.spec.id);
    if (!folder.empty()) {
      const auto written = records::read_run(folder);
      EXPECT_TRUE(std::ranges::any_of(written.cases, [&](const auto& one) {
        return one.spec.id == result.spec.id;
      })) << "a row is shown when its case is on the disk";
    }
  }
  std::size_t started = 0;
  std::vector<Turn> turns;
  std::set<std::size_t> progress;
  std::vector<std::size_t> rows;
  std::vector<std::string> ids;
  std::string folder;
};

class TogetherSession : public ::testing::Test {
 protected:
  records::Run run(const planning::Plan& plan, std::size_t jobs, const std::string& name,
                   bool resume = false) {
    SessionOptions options;
    options.jobs = jobs;
    options.resume = resume;
    rows = {};
    rows.folder = scratch / name;
    const RunFolder folder(rows.folder);
    return run_plan(plan, folder, options, runner, rows);
  }
  static planning::Plan cards(std::size_t count, const std::string& cpu_at = "") {
    std::vector<planning::PlannedCase> cases;
    for (std::size_t i = 0; i < count; ++i) {
      const auto model = "m" + std::to_string(i);
      const auto device = model == cpu_at ? "cpu" : kCard;
      auto one = planned_case(model, "baseline", device);
      one.spec.slug = model;
      cases.push_back(one);
    }
    return plan_of(std::move(cases));
  }
  static std::string without_times(records::Run run) {
    run.created.clear();
    return to_json(run).dump();
  }

  ScratchFolder scratch;
  SlowRunner runner;
  Rows rows;
};

TEST_F(TogetherSession, RowsAndRunAreThoseOfOneByOne) {
  auto plan = cards(12);
  plan.cases[5].decided = Status::kConflict;
  plan.cases[5].reason = "both fill the slot";
  const auto one_by_one = without_times(run(plan, 1, "one"));
  EXPECT_EQ(runner.most, 1);
  const auto ids = rows.ids;
  runner.together = 4;
  const auto together = without_times(run(plan, 4, "four"));
  EXPECT_EQ(runner.most, 4);
  EXPECT_EQ(together, one_by_one);
  EXPECT_EQ(rows.ids, ids);
  EXPECT_TRUE(std::ranges::is_sorted(rows.rows));
  EXPECT_EQ(rows.rows.size(), 12u);
  EXPECT_EQ(rows.turns.size(), 11u);
  EXPECT_EQ(rows.progress.size(), 11u);
  EXPECT_EQ(records::read_run(scratch / "four").status, "complete");
}

TEST_F(TogetherSession, NothingRunsBesideAWorkerOfAnotherDevice) {
  runner.together = 3;
  const auto found = run(cards(9, "m4"), 3, "run");
  EXPECT_EQ(runner.beside_cpu, 1);
  EXPECT_EQ(runner.most, 3);
  EXPECT_EQ(found.status, "complete");
  EXPECT_TRUE(found.cases[4].throughput.has_value());
  EXPECT_TRUE(std::ranges::is_sorted(rows.rows));
}

// A job of a real card's: on which, and whether it is timed.
class CardsRunner : public Runner {
 public:
  WorkerReport run(const WorkerOrder& order, const Listener&) override {
    const bool timed = order.job.mode == records::JobMode::kThroughput;
    {
      const std::lock_guard lock(mutex);
      jobs[order.job.device].push_back(order.job.case_id + (timed ? " timed" : ""));
      EXPECT_TRUE(at_work.insert(order.job.device).second) << "two workers on one card";
      most = std::max(most, at_work.size());
      beside_timed = beside_timed || (timed_at_work || timed ? at_work.size() > 1 : false);
      timed_at_work = timed;
    }
    for (int i = 0; i < 500 && wanted > most_now(); ++i)
      std::this_thread::sleep_for(milliseconds(10));
    std::this_thread::sleep_for(milliseconds(5));
    const std::lock_guard lock(mutex);
    at_work.erase(order.job.device);
    if (timed) timed_at_work = false;
    return FakeRunner::good(order);
  }
  std::size_t most_now() {
    const std::lock_guard lock(mutex);
    return most;
  }

  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> jobs;
  std::set<std::string> at_work;
  std::size_t most = 0, wanted = 0;  // a worker stays until so many were at work
  bool timed_at_work = false, beside_timed = false;
};

TEST_F(TogetherSession, CardsAreMeasuredBesideEachOtherAndTimedAlone) {
  std::vector<planning::PlannedCase> cases;
  for (const auto* model : {"m0", "m1", "m2"})
    for (const auto* device : {"cuda:0", "cuda:1", "cpu"})
      for (const auto* stack : {"baseline", "slim"}) {
        cases.push_back(planned_case(model, stack, device));
        cases.back().spec.slug = std::to_string(cases.size());
      }
  cases[2].decided = Status::kConflict;
  const auto plan = plan_of(std::move(cases));
  std::string found[2];
  std::map<std::string, std::vector<std::string>> jobs[2];
  for (const std::size_t jobs_at_once : {1, 8}) {
    CardsRunner cards;
    cards.wanted = jobs_at_once == 1 ? 1 : 2;
    SessionOptions options;
    options.jobs = jobs_at_once;
    Rows heard;
    const RunFolder folder(scratch / std::to_string(jobs_at_once));
    const auto at = jobs_at_once == 1 ? 0 : 1;
    found[at] = without_times(run_plan(plan, folder, options, cards, heard));
    EXPECT_EQ(cards.most, jobs_at_once == 1 ? 1u : 2u) << "the CPU's are by themselves";
    EXPECT_FALSE(cards.beside_timed);
    EXPECT_EQ(heard.rows.size(), plan.cases.size());
    for (auto& [device, its] : cards.jobs) std::ranges::sort(its);
    jobs[at] = cards.jobs;
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(jobs[0], jobs[1]);
}

TEST_F(TogetherSession, CasesThatFailAreRowsLikeOthers) {
  runner.answer = [](const WorkerOrder& order, WorkerReport& report) {
    if (!order.job.case_id.starts_with("m3/")) return;
    report.result = {};
    report.result.status = Status::kCrashed;
    report.result.reason = "killed by SIGSEGV";
  };
  const auto found = run(cards(8), 4, "run");
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(found.cases[i].status, i == 3 ? Status::kCrashed : Status::kOk);
}

// The worker that tells how much memory was needed is its case's second, on the same thread.
TEST_F(TogetherSession, WhatACaseWouldHaveNeededIsFoundForEach) {
  runner.answer = [](const WorkerOrder& order, WorkerReport& report) {
    if (order.job.trace_path.empty()) return;
    report.result = {};
    report.result.status = Status::kOutOfMemory;
    report.result.out_of_memory = records::OutOfMemory{};
  };
  const auto found = run(cards(6), 3, "run");
  for (const auto& one : found.cases)
    EXPECT_EQ(one.out_of_memory->needed_bytes, std::int64_t{1} << 30);
}

TEST_F(TogetherSession, AnInterruptKeepsWhatEndedAndResumeDoesTheRest) {
  const auto plan = cards(12);
  {
    const InterruptScope scope;
    runner.answer = [](const WorkerOrder& order, WorkerReport& report) {
      if (order.job.case_id.starts_with("m6/")) kill(getpid(), SIGINT);
      report.interrupted = interrupted();
    };
    const auto cut = run(plan, 2, "run");
    EXPECT_EQ(cut.status, "interrupted");
    EXPECT_GE(cut.cases.size(), 5u) << "those that ended while the first was at work";
    EXPECT_EQ(cut.cases.size() + cut.pending.size(), 12u);
    EXPECT_EQ(rows.rows.size(), cut.cases.size());
    EXPECT_TRUE(std::ranges::is_sorted(rows.rows));
  }
  runner.answer = {};
  const auto before = runner.orders.size();
  const auto kept = records::read_run(scratch / "run").cases.size();
  const auto whole = run(plan, 2, "run", true);
  EXPECT_EQ(whole.status, "complete");
  EXPECT_EQ(whole.cases.size(), 12u);
  EXPECT_EQ(runner.orders.size() - before, 12u - kept);
}

// More cases than are written one after another.
TEST_F(TogetherSession, ALargeRunIsWholeInTheEnd) {
  const auto found = run(cards(150), 8, "run");
  EXPECT_EQ(found.cases.size(), 150u);
  EXPECT_EQ(records::read_run(scratch / "run").cases.size(), 150u);
  EXPECT_EQ(rows.rows.size(), 150u);
  EXPECT_TRUE(std::ranges::is_sorted(rows.rows));
}

}  // namespace
}  // namespace peakbench::launch
