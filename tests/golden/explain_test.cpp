// The sentences of fake traces with known answers.
#include "reports/run/explain.h"

#include <gtest/gtest.h>

#include "support/fake_step.h"

namespace peakbench::reports {
namespace {

using trace::anatomy;
using trace::anatomy_of;
using trace::FakeTrace;
using trace::kGib;
using trace::lifetimes;
using trace::Role;

TEST(Explanation, ThePeakOfTheReference) {
  EXPECT_EQ(tell_peak(anatomy_of({.temporary = 2})),
            "The peak is 6.000 GiB allocated, in the optimizer step (aten::_foreach_sqrt).");
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

// What most of a change is stands with it; what is less than two thirds of it does not.
TEST(Explanation, ACauseThatIsMostOfAChangeIsNamed) {
  const analysis::Cause most{"temporary", "", "aten::_foreach_sqrt", {4, 0, kGib, {}, {}}, {}};
  const auto told = [&](std::int64_t bytes) {
    auto cause = most;
    cause.base.block_bytes = bytes;
    return explain(anatomy_of({.activation = 1, .gradient = 1, .temporary = 2}),
                   anatomy_of({.activation = 1, .gradient = 1, .temporary = 1}), "baseline",
                   "foreach-off", {{"temporary", 0, -bytes, {cause}}});
  };
  EXPECT_NE(told(kGib).find("uses 1.000 GiB less temporary memory (by aten::_foreach_sqrt, 4 "
                            "tensors fewer). The peak"),
            std::string::npos)
      << told(kGib);
  EXPECT_NE(told(kGib / 2).find("less temporary memory. The peak"), std::string::npos);
  EXPECT_NE(told(-kGib).find("less temporary memory. The peak"), std::string::npos);
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
}  // namespace peakbench::reports
