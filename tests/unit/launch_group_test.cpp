// Groups of several processes: how they end together, and what is said of them.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

#include "launch/case.h"
#include "launch/interrupt.h"
#include "launch/run_group.h"
#include "launch/worker_environment.h"
#include "support/fake_plan.h"
#include "support/scratch.h"
#include "worker_fixture.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using records::Status;
using namespace peakbench::testing;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

class GroupTest : public WorkerTest {
 protected:
  // Processes that have one of this test's jobs as an argument.
  int left_running() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline", std::ios::binary);
      const std::string words(std::istreambuf_iterator<char>(file), {});
      if (words.find(scratch.path()) != std::string::npos) ++count;
    }
    return count;
  }
};

TEST_P(GroupTest, EachProcessHasItsRankAndItsFiles) {
  const auto report = run_group({"say_rank", "say_rank", "say_rank"});
  EXPECT_EQ(first_failure(report.ranks), std::nullopt);
  EXPECT_EQ(group_outcome(report.ranks).status, Status::kOk);
  EXPECT_FALSE(is_interrupted(report));
  EXPECT_TRUE(contains(read_text(scratch / "worker.log"), "RANK=0 LOCAL_RANK=0 WORLD_SIZE=3"));
  EXPECT_TRUE(contains(read_text(scratch / "worker.2.log"), "RANK=2 LOCAL_RANK=2 WORLD_SIZE=3"));
  for (const auto& rank : report.ranks) EXPECT_GT(rank.peak_rss_bytes, 1 << 20);
}

TEST_P(GroupTest, OneThatIsAloneHearsOfNoRank) {
  run("say_rank");
  EXPECT_EQ(read_text(scratch / "worker.log"),
            "about to say_rank\nRANK=None LOCAL_RANK=None WORLD_SIZE=None MASTER_PORT=None\n");
}

TEST_P(GroupTest, ProgressIsThatOfRank0AndTimePassesUntilAllHaveEnded) {
  const auto report = run_group({"ok", "slow"});
  EXPECT_EQ(group_outcome(report.ranks).status, Status::kOk);
  EXPECT_EQ(progress.size(), 7U);
  EXPECT_GT(ticks, 30) << "every few milliseconds of the second that the other takes";
}

TEST_P(GroupTest, TheFirstFailureEndsAllAndLeads) {
  const auto start = steady_clock::now();
  const auto report = run_group({"hang", "segfault", "hang"});
  constexpr auto kSoon = std::chrono::seconds(15);
  EXPECT_LT(steady_clock::now() - start, kSoon);
  EXPECT_EQ(first_failure(report.ranks), 1U);
  EXPECT_EQ(report.ranks[0].cut_short, CutShort::kWithGroup);
  EXPECT_EQ(report.ranks[2].cut_short, CutShort::kWithGroup);
  const auto outcome = group_outcome(report.ranks);
  EXPECT_EQ(outcome.status, Status::kCrashed);
  EXPECT_EQ(outcome.reason,
            "rank 1 of 3: the worker was killed by SIGSEGV (segmentation fault); it was last seen "
            "in optimizer_step of step 2 of 2 [worker.1.log: about to segfault]");
  EXPECT_FALSE(is_interrupted(report));
  EXPECT_EQ(left_running(), 0);
}

TEST_P(GroupTest, WhatAWorkerSaysOfItselfEndsTheOthersToo) {
  const auto report = run_group({"hang_hard", "out_of_memory"});
  EXPECT_EQ(group_outcome(report.ranks).status, Status::kOutOfMemory);
  EXPECT_EQ(report.ranks[0].cut_short, CutShort::kWithGroup);
  EXPECT_EQ(left_running(), 0);
}

TEST_P(GroupTest, AMemberThatCannotBeStartedIsAFailure) {
  fs::create_directories(scratch / "worker.1.log");
  const auto report = run_group({"hang", "ok", "hang"});
  EXPECT_EQ(first_failure(report.ranks), 1U);
  const auto outcome = group_outcome(report.ranks);
  EXPECT_EQ(outcome.status, Status::kHostFailure);
  EXPECT_TRUE(contains(outcome.reason, "rank 1 of 3: "));
  EXPECT_TRUE(contains(outcome.reason, "worker.1.log: cannot write"));
  EXPECT_EQ(left_running(), 0);
}

TEST_P(GroupTest, CtrlCEndsAll) {
  const InterruptScope scope;
  std::jthread late([&](const std::stop_token& over) {
    while (!over.stop_requested() &&
           read_text(scratch / "worker.1.log").find("about to") == std::string::npos)
      std::this_thread::sleep_for(milliseconds(10));
    kill(getpid(), SIGINT);
  });
  const auto report = run_group({"hang", "hang"});
  EXPECT_TRUE(is_interrupted(report));
  for (const auto& rank : report.ranks) EXPECT_EQ(rank.cut_short, CutShort::kByCtrlC);
  EXPECT_EQ(first_failure(report.ranks), std::nullopt);
  EXPECT_EQ(left_running(), 0);
}

TEST_P(GroupTest, TheMemoryLimitIsOfAllTogether) {
  rss_limit = 600 << 20;
  const auto report = run_group({"hang", "eat_memory"});
  const auto outcome = group_outcome(report.ranks);
  EXPECT_EQ(outcome.status, Status::kOutOfMemory);
  EXPECT_TRUE(contains(outcome.reason, "rank 1 of 2: "));
  EXPECT_TRUE(contains(outcome.reason, "resident memory passed 0.29 GiB"));
}

TEST_P(GroupTest, AListenerThatThrowsLeavesNothingRunning) {
  GroupOrder order;
  for (std::size_t rank = 0; rank < 2; ++rank) order.workers.push_back(worker(rank, "hang"));
  Listener listener;
  listener.progress = [](const records::Progress&) { throw std::runtime_error("no more"); };
  ProcessRunner runner;
  EXPECT_THROW(runner.run(order, listener), std::runtime_error);
  for (int i = 0; i < 200 && left_running() > 0; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(left_running(), 0);
}

INSTANTIATE_TEST_SUITE_P(Way, GroupTest, ::testing::Values(Way::kFresh, Way::kForked), name_of);

// ---- pure ----

WorkerReport ended(Status status, int after_ms, CutShort cut_short = CutShort::kNo) {
  WorkerReport report;
  report.result.status = status;
  report.result.reason = status == Status::kOk ? "" : "it was " + to_string(status);
  report.cut_short = cut_short;
  report.ended = steady_clock::time_point(milliseconds(after_ms));
  return report;
}

TEST(FirstFailure, Table) {
  const auto ok = ended(Status::kOk, 1), late_crash = ended(Status::kCrashed, 9);
  const auto oom = ended(Status::kOutOfMemory, 5);
  const auto with_group = ended(Status::kHostFailure, 2, CutShort::kWithGroup);
  struct Row {
    std::vector<WorkerReport> ranks;
    std::optional<std::size_t> first;
    std::string reason;
  };
  const std::vector<Row> table{
      {{ok}, std::nullopt, ""},
      {{oom}, 0, "it was out_of_memory"},
      {{ok, ok}, std::nullopt, ""},
      {{ok, oom}, 1, "rank 1 of 2: it was out_of_memory"},
      {{late_crash, oom}, 1, "rank 1 of 2: it was out_of_memory"},
      {{with_group, late_crash, with_group}, 1, "rank 1 of 3: it was crashed"},
      {{oom, oom}, 0, "rank 0 of 2: it was out_of_memory"},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    EXPECT_EQ(first_failure(table[i].ranks), table[i].first) << i;
    EXPECT_EQ(group_outcome(table[i].ranks).reason, table[i].reason) << i;
  }
}

TEST(GroupOutcome, MemoryIsTheLargestRanksAndTheRestIsRank0s) {
  auto small = ended(Status::kOk, 1), large = small;
  small.result.memory = memory_of(100);
  small.result.losses = {1.0};
  small.result.emulation.emplace().card = "a";
  large.result.memory = memory_of(200);
  large.result.losses = {2.0};
  large.result.emulation.emplace().card = "b";
  const auto outcome = group_outcome({small, large});
  EXPECT_EQ(outcome.memory->peak_allocated_bytes, 200);
  EXPECT_EQ(outcome.emulation->card, "b");
  EXPECT_EQ(outcome.losses, (std::vector<double>{1.0}));
}

TEST(GroupOutcome, IsAsDoubtfulAsItsWorstRank) {
  auto small = ended(Status::kOk, 1), large = small;
  small.result.memory = memory_of(100);
  auto& doubted = small.result.emulation.emplace().verdict.emplace();
  doubted.kind = records::VerdictKind::unreliable;
  doubted.reasons = {"it read a size"};
  large.result.memory = memory_of(200);
  large.result.emulation.emplace().verdict.emplace().kind = records::VerdictKind::exact_if;
  for (const auto& ranks : {std::vector{small, large}, std::vector{large, small}}) {
    const auto verdict = *group_outcome(ranks).emulation->verdict;
    EXPECT_EQ(verdict.kind, records::VerdictKind::unreliable);
    EXPECT_EQ(verdict.reasons, std::vector<std::string>{"it read a size"});
  }
}

// Answers for three processes, whatever the order.
class ThreeRanks : public FakeRunner {
 public:
  GroupReport run(const GroupOrder& order, const Listener& listener) override {
    auto report = FakeRunner::run(order, listener);
    write_text(fs::path(order.workers[0].job.trace_path).replace_filename("trace.1.sqlite"), "x");
    for (const std::int64_t peak : {3000, 1000}) {
      report.ranks.push_back(FakeRunner::good(order.workers[0]));
      report.ranks.back().result.memory = memory_of(peak);
      report.ranks.back().peak_rss_bytes = peak + 1;
    }
    report.ranks[0].result.memory = memory_of(2000);
    return report;
  }
};

TEST(GroupOfACase, EveryRankIsInTheRecordAndTheLargestIsTheHeadline) {
  const ScratchFolder scratch;
  const auto planned = planned_case("m", "baseline");
  const auto request = plan_of({}).request;
  ThreeRanks runner;
  const auto found = measure_memory({&planned, &request, scratch / "run", {}}, runner, {});
  ASSERT_EQ(found->ranks.size(), 3U);
  EXPECT_EQ(found->memory->peak_allocated_bytes, 3000);
  EXPECT_EQ(found->memory->worker_peak_rss_bytes, 3001);
  EXPECT_EQ(found->ranks[0].memory->peak_allocated_bytes, 2000);
  EXPECT_EQ(found->ranks[0].memory->worker_peak_rss_bytes, 777);
  EXPECT_EQ(found->ranks[0].trace, "");
  EXPECT_EQ(found->ranks[1].trace, "cases/m-baseline/trace.1.sqlite");
  EXPECT_EQ(found->ranks[2].rank, 2);
}

TEST(RankEnvironment, IsWhatPyTorchsLauncherSets) {
  EXPECT_TRUE(rank_environment(0, 1, 0).empty());
  const auto environment = rank_environment(1, 4, 29500);
  const std::map<std::string, std::string> set(environment.begin(), environment.end());
  EXPECT_EQ(set.at("RANK"), "1");
  EXPECT_EQ(set.at("LOCAL_RANK"), "1");
  EXPECT_EQ(set.at("WORLD_SIZE"), "4");
  EXPECT_EQ(set.at("LOCAL_WORLD_SIZE"), "4");
  EXPECT_EQ(set.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(set.at("MASTER_PORT"), "29500");
  EXPECT_GT(free_port(), 1023);
}

}  // namespace
}  // namespace peakbench::launch
