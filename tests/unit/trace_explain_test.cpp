// The waterfall and the explanation of fake traces with known answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_trace.h"
#include "trace/explain.h"
#include "trace/waterfall.h"

namespace peakbench::trace {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kGib = std::int64_t{1} << 30;

struct Shape {
  std::int64_t activation = 1, gradient = 1, temporary = 1;  // GiB
};

// Parameters 1 GiB, optimizer state 2 GiB; a step as the shape says.
FakeTrace step_of(const Shape& shape) {
  FakeTrace fake;
  fake.named(Role::kParameter, "weight").alloc(kGib);
  fake.named(Role::kOptimizerState, "exp_avg").alloc(2 * kGib);
  fake.forward(0).at("encoder", "aten::addmm");
  const auto hidden = fake.alloc(shape.activation * kGib);
  fake.backward(0).at("encoder", "AddmmBackward0");
  const auto gradient = fake.named(Role::kGradient, "weight").alloc(shape.gradient * kGib);
  fake.free(hidden).optimizer_step(0).at("", "aten::_foreach_sqrt");
  const auto update = fake.alloc(shape.temporary * kGib);
  fake.free(update).free(gradient);
  return fake;
}

Anatomy anatomy_of(const Shape& shape) {
  const auto fake = step_of(shape);
  return anatomy(fake.trace(), lifetimes(fake.trace()));
}

TEST(Waterfall, AddsUpExactly) {
  const auto from = anatomy_of({.activation = 2, .gradient = 3, .temporary = 4});
  const auto to = anatomy_of({.activation = 5, .gradient = 1, .temporary = 1});
  const auto found = waterfall(from.peak.parts, to.peak.parts);
  EXPECT_EQ(found.from_bytes, 10 * kGib);
  EXPECT_EQ(found.to_bytes, 9 * kGib) << "in backward: weight, state, activation, gradient";
  std::vector<std::tuple<Category, Phase, std::int64_t, std::int64_t>> steps;
  for (const auto& step : found.steps)
    steps.emplace_back(step.category, step.phase, step.difference_bytes / kGib,
                       step.level_bytes / kGib);
  EXPECT_THAT(steps, ElementsAre(std::tuple(Category::kTemporary, Phase::kOptimizerStep, -4, 6),
                                 std::tuple(Category::kGradient, Phase::kBackward, -2, 4),
                                 std::tuple(Category::kActivation, Phase::kForward, 5, 9)));
  EXPECT_TRUE(waterfall(from.peak.parts, from.peak.parts).steps.empty());
}

TEST(Waterfall, SlackCountsInThePhaseOfItsBlock) {
  FakeTrace fake("cuda:0");
  fake.forward(0).alloc(100, 512);
  const auto parts = parts_at(fake.trace(), lifetimes(fake.trace()), 0);
  EXPECT_EQ(parts[static_cast<std::size_t>(Category::kAllocatorSlack)]
                 [static_cast<std::size_t>(Phase::kForward)],
            412);
  EXPECT_EQ(total(parts), 512);
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

TEST(Explanation, ThePeakOfTheReference) {
  EXPECT_EQ(tell_peak(anatomy_of({.temporary = 2})),
            "The peak is 6.000 GiB, in the optimizer step (aten::_foreach_sqrt).");
}

TEST(Explanation, WhatWasRemovedAtThePeakLowersIt) {
  EXPECT_EQ(
      explain(anatomy_of({.activation = 1, .gradient = 1, .temporary = 2}),
              anatomy_of({.activation = 1, .gradient = 1, .temporary = 1}), "baseline",
              "foreach-off"),
      "In the optimizer step, where baseline peaks, foreach-off uses 1.000 GiB less temporary "
      "memory. The peak is now 5.000 GiB (\u221216.7 %), in backward (AddmmBackward0), where "
      "baseline uses as much.");
}

TEST(Explanation, WhatIsRemovedElsewhereDoesNot) {
  EXPECT_EQ(
      explain(anatomy_of({.activation = 2, .gradient = 1, .temporary = 3}),
              anatomy_of({.activation = 1, .gradient = 1, .temporary = 3}), "baseline",
              "checkpointing"),
      "In the optimizer step, where baseline peaks, checkpointing uses about the same memory, "
      "so the peak stays at 7.000 GiB. It saves memory in forward, whose own peak falls from "
      "5.000 GiB to 4.000 GiB (1.000 GiB less activation memory).");
}

TEST(Explanation, APeakThatRises) {
  EXPECT_EQ(
      explain(anatomy_of({.activation = 1, .gradient = 1, .temporary = 2}),
              anatomy_of({.activation = 1, .gradient = 1, .temporary = 3}), "baseline", "slow"),
      "In the optimizer step, where baseline peaks, slow uses 1.000 GiB more temporary memory. The "
      "peak rises to 7.000 GiB (+16.7 %), still in the optimizer "
      "step (aten::_foreach_sqrt).");
}

TEST(Explanation, AStrategyWithoutThatPhase) {
  FakeTrace fused;
  fused.named(Role::kParameter, "weight").alloc(kGib);
  fused.forward(0).alloc(kGib / 2);
  fused.backward(0).at("encoder", "aten::mul").in_update(true).alloc(kGib / 4);
  EXPECT_EQ(
      explain(anatomy_of({}), anatomy(fused.trace(), lifetimes(fused.trace())), "baseline",
              "fused"),
      "In backward, where baseline peaks, fused uses 2.000 GiB less optimizer state, 1.000 GiB "
      "less gradient memory, 0.500 GiB less activation memory and 0.250 GiB more temporary "
      "memory. The peak is now 1.750 GiB (\u221265.0 %), still in backward, "
      "inside a parameter update (aten::mul).");
  EXPECT_EQ(explain(anatomy_of({.temporary = 2}), anatomy(fused.trace(), lifetimes(fused.trace())),
                    "baseline", "fused"),
            "In the optimizer step, where baseline peaks, fused allocates nothing. The peak "
            "is now 1.750 GiB (\u221270.8 %), in backward, inside a parameter update (aten::mul), "
            "where baseline reaches 5.000 GiB.");
}

TEST(Explanation, OfNothing) {
  const auto nothing = anatomy(FakeTrace().trace(), {});
  EXPECT_EQ(
      explain(nothing, nothing, "a", "b"),
      "In the build, where a peaks, b uses about the same memory, so the peak stays at 0 bytes.");
}

}  // namespace
}  // namespace peakbench::trace
