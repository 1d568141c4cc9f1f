// Two builds in turn, with runners that start nothing.
#include <gtest/gtest.h>

#include "ab/pairs.h"
#include "launch/throughput.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::ab {
namespace {

using namespace peakbench::testing;
using launch::WorkerOrder;
using launch::WorkerReport;
using result::Status;

class Pairs : public ::testing::Test {
 protected:
  PairsEnd run(std::int64_t count) {
    PairsOrder order;
    order.base = side(base, "base");
    order.now = side(now, "now");
    order.pairs = count;
    order.seed = 7;
    return run_pairs(order, [&](const Pair&) { ++done; });
  }

  PairSide side(FakeRunner& runner, const std::string& folder) {
    PairSide side;
    side.order.planned = &planned;
    side.order.request = &request;
    side.order.run_directory = scratch / folder;
    side.runner = &runner;
    return side;
  }

  static WorkerReport timed(std::int64_t step_ns) {
    WorkerReport report;
    report.result.throughput = throughput_of({step_ns});
    return report;
  }

  ScratchFolder scratch;
  plan::PlannedCase planned = planned_case("m", "baseline");
  plan::Request request = plan_of({}).request;
  FakeRunner base, now;
  int done = 0;
};

TEST_F(Pairs, EachSideOnceInTheOrderDrawn) {
  std::vector<bool> base_first;
  bool waiting = false;
  const auto took = [&](bool is_base) {
    if (!waiting) base_first.push_back(is_base);
    waiting = !waiting;
  };
  base.answer = [&](const WorkerOrder&) {
    took(true);
    return timed(100);
  };
  now.answer = [&](const WorkerOrder&) {
    took(false);
    return timed(200);
  };
  const auto end = run(6);
  EXPECT_EQ(base_first, base_first_order(6, 7));
  ASSERT_EQ(end.pairs.size(), 6U);
  EXPECT_EQ(done, 6);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(end.pairs[i].base.step_ns.median, 100);
    EXPECT_EQ(end.pairs[i].now.step_ns.median, 200);
    EXPECT_EQ(end.pairs[i].base_first, base_first[i]);
  }
  EXPECT_EQ(end.problem, "");
  EXPECT_FALSE(end.interrupted);
  EXPECT_EQ(base.orders[0].job.mode, result::JobMode::kThroughput);
}

TEST_F(Pairs, AProblemNamesItsSideAndKeepsTheWholePairs) {
  now.answer = [&](const WorkerOrder&) {
    auto report = timed(200);
    if (now.orders.size() == 3) {
      report.result.status = Status::kTimeout;
      report.result.reason = "stopped after 60 s";
    }
    return report;
  };
  const auto end = run(6);
  EXPECT_EQ(end.problem, "NEW: timeout: stopped after 60 s");
  EXPECT_EQ(end.pairs.size(), 2U);
  EXPECT_EQ(done, 2);
}

TEST_F(Pairs, WithoutATimeThereIsNoPair) {
  base.answer = [](const WorkerOrder&) { return timed(0); };
  EXPECT_EQ(run(2).problem, "BASE: ok: the worker timed no step");
  base.answer = [](const WorkerOrder&) { return WorkerReport{}; };
  EXPECT_EQ(run(2).problem, "BASE: ok: the worker timed no step");
  base.answer = [](const WorkerOrder&) { return timed(1); };
  EXPECT_EQ(run(2).problem, "");
}

TEST_F(Pairs, CtrlCEndsThem) {
  base.answer = [](const WorkerOrder&) {
    auto report = timed(100);
    report.cut_short = by_ctrl_c();
    return report;
  };
  const auto end = run(2);
  EXPECT_TRUE(end.interrupted);
  EXPECT_EQ(end.problem, "");
  EXPECT_TRUE(end.pairs.empty());
}

// Who goes first is drawn once and for all: the same seed, the same order, with every library.
TEST(PairsOrder, IsTheSameEverywhere) {
  EXPECT_EQ(base_first_order(8, 1),
            (std::vector<bool>{true, true, false, false, false, false, true, true}));
  EXPECT_EQ(base_first_order(3, 1).size(), 3U);
  EXPECT_TRUE(base_first_order(0, 1).empty());
}

}  // namespace
}  // namespace peakbench::ab
