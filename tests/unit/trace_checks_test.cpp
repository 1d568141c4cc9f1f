// Traces just within what is allowed, and just beyond it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "support/fake_trace.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/summary.h"
#include "trace_errors.h"

namespace peakbench::trace {
namespace {

using testing::HasSubstr;

// One allocation in the second of two spaces, by the last module and operator there is.
FakeTrace at_the_end_of_every_list() {
  FakeTrace fake("cuda:0");
  fake.at("first", "aten::first").alloc(8);
  fake.in("cpu").at("second", "aten::second").alloc(8);
  return fake;
}

TEST(Bounds, TheFirstAndTheLastOfEachListAreKnown) {
  EXPECT_EQ(error_of(at_the_end_of_every_list().trace()), "(no error)");
}

TEST(Bounds, OneBeyondIsNot) {
  for (const std::int16_t space : {-1, 2}) {
    auto fake = at_the_end_of_every_list();
    fake.trace().events[1].space = space;
    EXPECT_THAT(error_of(fake.trace()), HasSubstr("space " + std::to_string(space) + " of 2"));
  }
  for (const std::int32_t index : {-2, 2}) {
    auto fake = at_the_end_of_every_list();
    fake.trace().events[1].module = index;
    EXPECT_THAT(error_of(fake.trace()), HasSubstr("module " + std::to_string(index) + " of 2"));
    fake = at_the_end_of_every_list();
    fake.trace().events[1].op = index;
    EXPECT_THAT(error_of(fake.trace()), HasSubstr("operator " + std::to_string(index) + " of 2"));
  }
}

TEST(Bounds, ABlockHoldsWhatWasAskedFor) {
  FakeTrace fake("cuda:0");
  fake.alloc(0, 512);
  fake.alloc(512, 512);
  EXPECT_EQ(error_of(fake.trace()), "(no error)");
  fake.trace().events[1].requested_bytes = -1;
  EXPECT_THAT(error_of(fake.trace()), HasSubstr("event 1: a block of 512 bytes"));
  fake.trace().events[1].requested_bytes = 513;
  EXPECT_THAT(error_of(fake.trace()), HasSubstr("event 1: a block of 512 bytes"));
}

TEST(Bounds, AFreeThatKnowsNoSizeIsOne) {
  FakeTrace fake("cuda:0");
  fake.free(fake.alloc(100, 512));
  fake.trace().events[1].block_bytes = 0;
  EXPECT_EQ(error_of(fake.trace()), "(no error)");
  fake.trace().events[1].block_bytes = 1;
  EXPECT_THAT(error_of(fake.trace()), HasSubstr("a block of 1 bytes is freed"));
}

TEST(Bounds, TheSizeOfARequestToFreeCountsToo) {
  FakeTrace fake("cuda:0");
  fake.free_requested(fake.alloc(100, 512));
  fake.trace().events[1].block_bytes = 1024;
  EXPECT_THAT(error_of(fake.trace()), HasSubstr("event 1: a block of 1024 bytes is freed"));
}

TEST(Bounds, ANameBetweenTwoAllocationsIsOfNeither) {
  FakeTrace fake;
  const auto first = fake.alloc(100);
  fake.free(first).alloc(100);
  fake.trace().names.push_back({1, Role::kParameter, "w", "", ""});
  EXPECT_THAT(error_of(fake.trace()), HasSubstr("event 1: `w` names it"));
}

// What happens between two steps is of no step.
TEST(Bounds, BetweenStepsNothingCounts) {
  FakeTrace fake;
  fake.forward(0).alloc(10);
  const auto large = fake.build().alloc(1000);
  fake.free(large).forward(1).alloc(5);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(find_peak(fake.trace(), found).allocated_bytes, 15);
  const auto memory = summarise(fake.trace(), found);
  EXPECT_EQ(memory.peak_allocated_bytes, 15);
  EXPECT_EQ(memory.peak_requested_bytes, 15);
  EXPECT_FALSE(memory.phases.contains("build")) << "nothing was built before the first step";
  EXPECT_EQ(memory.steps, 2);
}

// The last event of all is of its phase too.
TEST(Bounds, WhatIsFreedLastOfAllWasATemporary) {
  FakeTrace fake;
  fake.forward(0);
  fake.free(fake.alloc(100));
  EXPECT_EQ(lifetimes(fake.trace())[0].category, Category::kTemporary);
}

TEST(Anatomy, APhaseBeginsWithTheLevelItFinds) {
  FakeTrace fake;
  fake.forward(0);
  const auto hidden = fake.alloc(100);
  fake.backward(0).free(hidden).alloc(10);
  const auto found = anatomy(fake.trace(), lifetimes(fake.trace()));
  EXPECT_EQ(found.phases[static_cast<std::size_t>(Phase::kBackward)]->allocated_bytes, 100);
}

TEST(RunningTotals, SlackIsWhatABlockHasBeyondWhatWasAsked) {
  FakeTrace fake("cuda:0");
  const auto block = fake.alloc(100, 512);
  fake.in("cpu").alloc(7);
  fake.in("cuda:0").free(block);
  const auto found = lifetimes(fake.trace());
  const auto owners = lifetime_of_event(fake.trace(), found);
  RunningTotals totals(fake.trace(), found, owners, 0);
  const auto slack = [&] {
    return totals.by_category()[static_cast<std::size_t>(Category::kAllocatorSlack)];
  };
  EXPECT_TRUE(totals.take(0));
  EXPECT_EQ(totals.allocated_bytes(), 512);
  EXPECT_EQ(totals.requested_bytes(), 100);
  EXPECT_EQ(slack(), 412);
  EXPECT_FALSE(totals.take(1)) << "of another space";
  EXPECT_EQ(totals.allocated_bytes(), 512);
  EXPECT_TRUE(totals.take(2));
  EXPECT_EQ(totals.allocated_bytes(), 0);
  EXPECT_EQ(totals.requested_bytes(), 0);
  EXPECT_EQ(slack(), 0);
  EXPECT_FALSE(totals.has_segments());
}

TEST(Waterfall, NoSuchEvent) {
  FakeTrace fake;
  fake.alloc(1);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(total(breakdown_at(fake.trace(), found, 0)), 1);
  EXPECT_THROW(breakdown_at(fake.trace(), found, 1), std::out_of_range);
}

}  // namespace
}  // namespace peakbench::trace
