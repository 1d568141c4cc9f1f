// What rounds say of a difference in time: closed forms, and the words of tables.
#include "reports/analysis/timing.h"

#include <gtest/gtest.h>

#include <cmath>

#include "records.h"
#include "reports/render/words.h"
#include "reports/run/report.h"
#include "reports/run/view.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using records::Throughput;
using statistics::Direction;

// Rounds from 0 on, one step each.
Throughput timed(const std::vector<double>& nanoseconds) {
  Throughput found;
  for (const double time : nanoseconds) {
    const auto step = static_cast<std::int64_t>(std::llround(time));
    found.rounds.push_back({static_cast<std::int64_t>(found.rounds.size()), 0, {step}, {}});
    found.step_times_ns.push_back(step);
  }
  found.step_ns.median = statistics::median_of(found.step_times_ns);
  return found;
}

constexpr double kStep = 1e12;  // so long that rounding to nanoseconds does not show

std::vector<double> slower_by(const std::vector<double>& logs) {
  std::vector<double> times;
  for (const double log : logs) times.push_back(kStep * std::exp(log));
  return times;
}

// Student's t at 99% with two degrees of freedom is (2 * 0.99 - 1) * sqrt(2 / (1 - 0.98^2)).
TEST(TimeAgainst, ThreeRoundsHaveStudentsInterval) {
  const auto found = time_against(timed(slower_by({0.1, 0.2, 0.3})), timed({kStep, kStep, kStep}));
  const double t = 0.98 * std::sqrt(2 / (1 - 0.98 * 0.98));
  const double half = t * 0.1 / std::sqrt(3.0);
  EXPECT_EQ(found.samples, 3U);
  EXPECT_NEAR(std::log(found.ratio), 0.2, 1e-9);
  EXPECT_NEAR(std::log(found.low), 0.2 - half, 1e-9);
  EXPECT_NEAR(std::log(found.high), 0.2 + half, 1e-9);
  EXPECT_FALSE(is_told(found)) << "+22%, and noise may have made it";
  EXPECT_EQ(interval_text(found), "−18.3 to +82.6");
  ASSERT_TRUE(found.more);
}

TEST(TimeAgainst, WhatIsBeyondNoiseIsTold) {
  const auto slow = time_against(timed(slower_by({0.19, 0.2, 0.21})), timed({kStep, kStep, kStep}));
  EXPECT_EQ(slow.direction, Direction::kWorse);
  EXPECT_EQ(interval_text(slow), "+17.3 to +27.2");
  const auto fast = time_against(timed({kStep, kStep, kStep}), timed(slower_by({0.19, 0.2, 0.21})));
  EXPECT_EQ(fast.direction, Direction::kBetter);
  EXPECT_NEAR(fast.ratio * slow.ratio, 1, 1e-9);
}

// The machine slows down by a half from round to round; within each the cases differ by 1%.
TEST(TimeAgainst, WhatBothMeetInARoundDoesNotCount) {
  const auto base = timed({kStep, 1.5 * kStep, 2.25 * kStep});
  const auto ours = timed({1.010 * kStep, 1.011 * 1.5 * kStep, 1.009 * 2.25 * kStep});
  EXPECT_EQ(time_against(ours, base).direction, Direction::kWorse);
  EXPECT_NEAR(time_against(ours, base).ratio, 1.01, 1e-5);
}

TEST(TimeAgainst, RoundsArePairedByTheirNumber) {
  auto ours = timed(slower_by({0.1, 0.2, 0.3}));
  ours.rounds.erase(ours.rounds.begin() + 1);
  const auto found = time_against(ours, timed({kStep, 9 * kStep, kStep}));
  EXPECT_EQ(found.samples, 2U);
  EXPECT_NEAR(std::log(found.ratio), 0.2, 1e-9);
}

TEST(TimeAgainst, OneRoundHasNoInterval) {
  const auto found = time_against(timed({2 * kStep}), timed({kStep}));
  EXPECT_NEAR(found.ratio, 2, 1e-9);
  EXPECT_FALSE(is_told(found));
  EXPECT_FALSE(has_interval(found));
  EXPECT_EQ(interval_text(found), "");
  EXPECT_EQ(no_interval_text(found), "one round: no interval");
  const auto two = time_against(timed({kStep, 2 * kStep}), timed({kStep, kStep}));
  EXPECT_FALSE(has_interval(two));
  EXPECT_EQ(no_interval_text(two), "two rounds: no interval");
}

TEST(TimeAgainst, AnIntervalThatSaysNothingIsShort) {
  const auto found = time_against(timed(slower_by({-2, 0, 2})), timed({kStep, kStep, kStep}));
  EXPECT_EQ(interval_text(found), "−100.0 to over +999");
  EXPECT_EQ(half_width_text(found), ">999");
}

TEST(TimeAgainst, FilesWithoutRoundsHaveARatioOfMedians) {
  Throughput ours, base;
  ours.step_ns.median = 150;
  base.step_ns.median = 100;
  const auto found = time_against(ours, base);
  EXPECT_NEAR(found.ratio, 1.5, 1e-12);
  EXPECT_EQ(no_interval_text(found), "not measured in rounds: no interval");
}

TEST(TimeAgainst, EqualTimesAreNoDifference) {
  const auto found = time_against(timed({kStep, kStep, kStep}), timed({kStep, kStep, kStep}));
  EXPECT_FALSE(is_told(found));
  EXPECT_TRUE(has_interval(found));
  EXPECT_EQ(interval_text(found), "0.0 to 0.0");
}

TEST(Disturbance, IsMoreThanATenthOfTheCores) {
  EXPECT_FALSE(is_busy(0.2, 2));
  EXPECT_TRUE(is_busy(0.21, 2));
  auto timed_once = timed({kStep, kStep, kStep});
  timed_once.rounds[0].other_busy_cores = 0.1;
  timed_once.rounds[2].other_busy_cores = 1.5;
  Disturbance load;
  load.add(timed_once, 2);
  EXPECT_EQ(load.rounds, 2U);  // of one it is not known
  EXPECT_EQ(load.busy, 1U);
  EXPECT_EQ(load.most, 1.5);
}

json group_of(const records::Run& run, std::size_t index = 0) {
  return data_of(make_view({run}))["groups"][index];
}

TEST(TimeInTables, ColourIsForWhatIsTold) {
  const json rows = group_of(golden::tutorial_run())["rows"];
  EXPECT_EQ(rows[0]["time"], false) << "the reference";
  EXPECT_TRUE(rows[1]["time"]["noise"]);
  EXPECT_FALSE(rows[1]["slower"]) << "its median is 1.7% above the reference's";
  EXPECT_EQ(rows[1]["time"]["interval"], "−6.3 to +12.1");
  EXPECT_TRUE(rows[3]["faster"]);
  EXPECT_EQ(rows[3]["time"]["rounds"], "3");
  EXPECT_TRUE(rows[4]["slower"]);
  EXPECT_EQ(rows[5]["time"], false) << "a conflict";
}

TEST(TimeInTables, OneRoundClaimsNothing) {
  const json group = group_of(golden::tutorial_run(), 1);
  const json& row = group["rows"][1];
  EXPECT_EQ(row["time"]["percent"], "−2.1");
  EXPECT_EQ(row["time"]["no_interval"], "one round: no interval");
  EXPECT_FALSE(row["faster"]);
  EXPECT_TRUE(group["lacks_intervals"]);
  EXPECT_FALSE(group["has_intervals"]);
  EXPECT_EQ(group["fastest"], false);
}

// An interval needs three rounds that both cases were timed in.
TEST(TimeInTables, TheFastestHasAnIntervalAgainstEveryOther) {
  const records::Run whole = golden::tutorial_run();
  const json group = group_of(whole);
  EXPECT_EQ(group["fastest"]["strategy"], group["rows"][3]["strategy"]);
  for (const std::size_t short_of_rounds : {0, 1, 3}) {
    records::Run run = whole;
    run.cases[short_of_rounds].throughput->rounds.resize(2);
    EXPECT_EQ(group_of(run)["fastest"], false) << short_of_rounds;
  }
  records::Run old = whole;
  for (records::CaseResult& result : old.cases)
    if (result.throughput) result.throughput->rounds.clear();
  EXPECT_EQ(group_of(old)["fastest"], false) << "a file of schema 1.0";
}

TEST(TimeInTables, TheFastestNamesWhatItMayTieWith) {
  records::Run run = golden::tutorial_run();
  EXPECT_EQ(group_of(run)["fastest"]["tied"], "");
  run.cases[3].throughput->rounds = run.cases[0].throughput->rounds;  // lora as fast as baseline
  EXPECT_EQ(group_of(run)["fastest"]["tied"], "baseline, foreach-off");
  EXPECT_TRUE(group_of(run)["fastest"]["different"]);
  run.cases.resize(1);
  EXPECT_EQ(group_of(run)["fastest"]["strategy"], "baseline");
  run.cases[0].throughput->rounds.resize(1);
  EXPECT_EQ(group_of(run)["fastest"], false);
}

// Neither ranks a case that broke its promise, nor hides that one is only claimed.
TEST(TimeInTables, TiesLeaveOutWhatIsBrokenAndMarkWhatIsClaimed) {
  records::Run run = golden::tutorial_run();
  for (const std::size_t i : {1, 2, 4}) run.cases[i].throughput = run.cases[0].throughput;
  run.cases[3].throughput->rounds = run.cases[0].throughput->rounds;
  run.cases[2].equivalence->verdict = "not_checked";
  EXPECT_EQ(group_of(run)["fastest"]["tied"], "baseline, foreach-off, fused-in-backward (claimed)");
}

TEST(TimeInTables, ABusyMachineIsNamed) {
  records::Run run = golden::tutorial_run();
  const json busy = group_of(run)["busy"];
  EXPECT_EQ(busy["most"], "1.3");
  EXPECT_EQ(busy["cores"], "2");
  EXPECT_EQ(busy["count"], "1");
  EXPECT_EQ(busy["timings"], "15");
  EXPECT_NE(main_table(run, 100).find("other processes used up to 1.3 of 2 cores"),
            std::string::npos);
  run.environment["logical_cores"] = 32;
  EXPECT_EQ(group_of(run)["busy"], false);
}

TEST(TimeInTables, AFailedCaseShowsNoTimeOfTheRoundsItHad) {
  records::Run run = golden::tutorial_run();
  run.cases[1].status = records::Status::kCrashed;
  const json group = group_of(run);
  EXPECT_EQ(group["rows"][1]["step_ms"], "");
  for (const json& point : group["pareto"]["points"]) EXPECT_NE(point["number"], "2");
}

}  // namespace
}  // namespace peakbench::reports
