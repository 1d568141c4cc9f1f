// Moments, parts and the waterfall of fake traces with known answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_step.h"
#include "trace/maxima.h"
#include "trace/summary.h"

namespace peakbench::trace {
namespace {

using testing::ElementsAre;

TEST(Waterfall, AddsUpExactly) {
  const auto from = anatomy_of({.activation = 2, .gradient = 3, .temporary = 4});
  const auto to = anatomy_of({.activation = 5, .gradient = 1, .temporary = 1});
  const auto found = waterfall(from.peak.breakdown, to.peak.breakdown);
  EXPECT_EQ(found.from_bytes, 10 * kGib);
  EXPECT_EQ(found.to_bytes, 9 * kGib) << "in backward: weight, state, activation, gradient";
  std::vector<std::tuple<Category, Phase, std::int64_t, std::int64_t>> steps;
  for (const auto& step : found.steps)
    steps.emplace_back(step.category, step.phase, step.difference_bytes / kGib,
                       step.level_bytes / kGib);
  EXPECT_THAT(steps, ElementsAre(std::tuple(Category::kTemporary, Phase::kOptimizerStep, -4, 6),
                                 std::tuple(Category::kGradient, Phase::kBackward, -2, 4),
                                 std::tuple(Category::kActivation, Phase::kForward, 5, 9)));
  EXPECT_TRUE(waterfall(from.peak.breakdown, from.peak.breakdown).steps.empty());
}

TEST(Waterfall, SlackCountsInThePhaseOfItsBlock) {
  FakeTrace fake("cuda:0");
  fake.forward(0).alloc(100, 512);
  const auto breakdown = breakdown_at(fake.trace(), lifetimes(fake.trace()), 0);
  EXPECT_EQ(breakdown[static_cast<std::size_t>(Category::kAllocatorSlack)]
                     [static_cast<std::size_t>(Phase::kForward)],
            412);
  EXPECT_EQ(total(breakdown), 512);
}

TEST(Anatomy, KnowsTheHighestMomentOfEveryPhase) {
  const auto found = anatomy_of({.activation = 2, .gradient = 3, .temporary = 4});
  EXPECT_EQ(found.peak.phase, Phase::kOptimizerStep);
  EXPECT_EQ(found.peak.op, "aten::_foreach_sqrt");
  EXPECT_EQ(found.peak.allocated_bytes, 10 * kGib);
  const auto bytes = [&](Phase phase) {
    return found.phases[static_cast<std::size_t>(phase)]->allocated_bytes / kGib;
  };
  EXPECT_EQ(bytes(Phase::kForward), 5);
  EXPECT_EQ(bytes(Phase::kBackward), 8);
  EXPECT_EQ(bytes(Phase::kOptimizerStep), 10);
  EXPECT_FALSE(found.phases[static_cast<std::size_t>(Phase::kBuild)]);
}

TEST(Anatomy, TheOperatorIsThatOfTheLastAllocationOfWeight) {
  FakeTrace fake;
  fake.forward(0).at("head", "aten::mm").alloc(1000000);
  fake.at("head", "aten::gelu").free(fake.alloc(300000)).alloc(400000);
  fake.at("", "aten::scalar_tensor").alloc(4);
  const auto found = anatomy(fake.trace(), lifetimes(fake.trace()));
  EXPECT_EQ(found.peak.event, 4U);
  EXPECT_EQ(found.peak.op, "aten::gelu");
  EXPECT_EQ(found.peak.module, "head");
  FakeTrace scalars;
  scalars.forward(0).at("head", "aten::mm").alloc(1000000);
  scalars.backward(0).at("", "aten::scalar_tensor").alloc(4);
  EXPECT_EQ(anatomy(scalars.trace(), lifetimes(scalars.trace())).peak.op, "")
      << "nothing of weight happened in backward";
}

TEST(Maxima, AreThoseThatTheMomentsThePeakAndTheSummaryHave) {
  const auto fake = step_of({.activation = 2, .gradient = 3, .temporary = 4});
  const auto found = lifetimes(fake.trace());
  const auto highest = maxima(fake.trace(), found);
  const auto moments = anatomy(fake.trace(), found);
  for (const auto phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizerStep}) {
    const auto at = static_cast<std::size_t>(phase);
    EXPECT_EQ(highest.phases[at]->event, moments.phases[at]->event);
    EXPECT_EQ(highest.phases[at]->allocated_bytes, moments.phases[at]->allocated_bytes);
  }
  EXPECT_EQ(highest.phases[0]->allocated_bytes, 3 * kGib) << "the build";
  EXPECT_EQ(highest.peak.event, find_peak(fake.trace(), found).event);
  EXPECT_FALSE(highest.reserved_bytes);
}

// Between two steps a level may rise and stay: the step that follows begins with it.
TEST(Maxima, WhatHappensBetweenStepsCountsForThePhaseThatFollows) {
  FakeTrace fake;
  fake.forward(0).free(fake.alloc(10));
  fake.build().alloc(100);
  fake.forward(1).free(fake.alloc(1));
  const auto found = lifetimes(fake.trace());
  const auto peak = find_peak(fake.trace(), found);
  EXPECT_EQ(peak.allocated_bytes, 101);
  EXPECT_EQ(peak.step, 1);
  EXPECT_EQ(anatomy(fake.trace(), found).peak.allocated_bytes, 101);
}

}  // namespace
}  // namespace peakbench::trace
