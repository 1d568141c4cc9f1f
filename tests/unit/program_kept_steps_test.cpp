// Steps of a program that stay in its trace, and what is left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/errors.h"
#include "programs/kept_steps.h"
#include "support/fake_trace.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"

namespace peakbench::programs {
namespace {

using ::testing::HasSubstr;
using trace::Category;
using trace::EventKind;

std::string error_of(const std::string& text) {
  try {
    step_range(text);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(StepRanges, AsPeopleTypeThem) {
  const auto most = StepRange{}.last;
  EXPECT_EQ(step_range("3"), (StepRange{3, 3}));
  EXPECT_EQ(step_range("2..4"), (StepRange{2, 4}));
  EXPECT_EQ(step_range("..4"), (StepRange{1, 4}));
  EXPECT_EQ(step_range("2.."), (StepRange{2, most}));
  EXPECT_EQ(part_name(step_range("3")), "step-3");
  EXPECT_EQ(part_name(step_range("..4")), "steps-1-to-4");
  EXPECT_EQ(part_name(step_range("2..")), "steps-from-2");
}

TEST(StepRanges, WhatIsNoneIsRefused) {
  for (const auto* text :
       {"", "..", "a", "2..b", "-1", "2..-4", "1.5", "2...4", "2-4", " 2", "99999999999999999999"})
    EXPECT_THAT(error_of(text), HasSubstr("expected steps, counted from 1: 3, 2..4")) << text;
  EXPECT_THAT(error_of("4..2"), HasSubstr("--steps 4..2: it ends before it begins"));
  EXPECT_THAT(error_of("0..2"), HasSubstr("the first step is 1"));
}

// Steps that make one of everything, and let some of it go later. Sizes tell allocations apart.
trace::Trace training(int steps) {
  trace::FakeTrace fake("cuda:0");
  std::int64_t size = 1000;
  const auto alloc = [&] { return fake.alloc(size++, 8192); };
  fake.trace().counts_build = true;
  fake.segment(EventKind::kSegmentAlloc, 1 << 20);
  fake.named(trace::Role::kParameter, "weight");
  alloc();
  const auto of_build = alloc();
  fake.free(alloc());
  std::vector<trace::FakeTrace::Allocation> last, before;
  for (int step = 0; step < steps; ++step) {
    fake.data(step);
    const auto batch = alloc();
    for (const auto allocation : before) fake.free(allocation);
    fake.trace().scopes.push_back(
        {.event = fake.trace().events.size(), .phase = trace::Phase::kForward, .step = step});
    fake.forward(step);
    const auto hidden = alloc();
    fake.free(alloc()).out_of_memory(1 << 30).free(alloc());  // it was caught
    if (step == 0) fake.free(of_build);
    const auto loss = alloc();
    fake.backward(step);
    fake.named(trace::Role::kGradient, "weight");
    const auto gradient = alloc();
    fake.free_requested(hidden).free(hidden);
    fake.optimizer_step(step);
    const auto update = [&](bool ends) {
      fake.trace().scopes.push_back(
          {.event = fake.trace().events.size(), .kind = trace::ScopeKind::kUpdate, .ends = ends});
    };
    update(false);
    fake.free(alloc()).free(gradient);
    update(true);
    before = last;
    last = {loss, batch, alloc()};
    fake.segment(EventKind::kSegmentAlloc, 1 << 20);
  }
  return fake.trace();
}

std::map<std::int64_t, Category> categories_of(const trace::Trace& trace) {
  std::map<std::int64_t, Category> categories;  // by size
  for (const auto& lifetime : trace::lifetimes(trace))
    categories[trace.events[lifetime.first].requested_bytes] = lifetime.category;
  return categories;
}

// What is alive after each allocation of these steps, by its size.
std::map<std::int64_t, std::int64_t> alive_in(const trace::Trace& trace, const StepRange& range) {
  std::map<std::int64_t, std::int64_t> alive;
  std::int64_t now = 0;
  std::multimap<std::uint64_t, std::int64_t> ends;
  std::map<std::uint64_t, std::int64_t> change;
  for (const auto& lifetime : trace::lifetimes(trace)) {
    change[lifetime.first] += trace.events[lifetime.first].block_bytes;
    if (lifetime.last < trace.events.size())
      change[lifetime.last] -= trace.events[lifetime.first].block_bytes;
  }
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    now += change.contains(i) ? change[i] : 0;
    const auto& event = trace.events[i];
    if (event.kind == EventKind::kAlloc && range.holds(event.step))
      alive[event.requested_bytes] = now;
  }
  return alive;
}

TEST(KeptSteps, HaveTheBytesAndCategoriesThatTheyHad) {
  const auto whole = training(9);
  for (const auto& range : {StepRange{4, 6}, StepRange{1, 1}, StepRange{9, 20}, StepRange{3, 3}}) {
    auto kept = whole;
    ASSERT_TRUE(keep_steps(kept, range));
    EXPECT_LT(kept.events.size(), whole.events.size());
    EXPECT_EQ(alive_in(kept, range), alive_in(whole, range));
    const auto before = categories_of(whole);
    for (const auto& [size, category] : categories_of(kept))
      EXPECT_EQ(category, before.at(size)) << size << " of steps from " << range.first;
  }
}

// The figures of some steps are those that the whole trace has there.
TEST(KeptSteps, PeaksOfPhasesAndReservedMemoryAreOfTheSteps) {
  const auto whole = training(9);
  for (const auto& range : {StepRange{4, 6}, StepRange{1, 2}, StepRange{9, 20}}) {
    auto counted = whole;  // nothing is left out, some of it is not counted
    const auto last = static_cast<std::int32_t>(std::min<std::int64_t>(range.last, 9));
    counted.counted_steps = {{static_cast<std::int32_t>(range.first - 1), last - 1}};
    auto kept = whole;
    ASSERT_TRUE(keep_steps(kept, range));
    EXPECT_EQ(kept.counted_steps, counted.counted_steps);
    const auto expected = trace::maxima(counted, trace::lifetimes(counted));
    const auto found = trace::maxima(kept, trace::lifetimes(kept));
    EXPECT_EQ(found.peak.allocated_bytes, expected.peak.allocated_bytes);
    EXPECT_EQ(found.reserved_bytes, expected.reserved_bytes);
    EXPECT_EQ(found.reserved_bytes, (last + 1) << 20);
    for (std::size_t i = 0; i < trace::kPhaseCount; ++i) {
      ASSERT_EQ(found.phases[i].has_value(), expected.phases[i].has_value()) << i;
      if (!found.phases[i]) continue;
      EXPECT_EQ(found.phases[i]->allocated_bytes, expected.phases[i]->allocated_bytes) << i;
      EXPECT_EQ(found.phases[i]->step, expected.phases[i]->step) << i;
    }
    EXPECT_FALSE(found.phases[static_cast<std::size_t>(trace::Phase::kBuild)]);
  }
}

TEST(KeptSteps, AllStepsAreAllButWhatTheBuildLetGo) {
  const auto whole = training(3);
  auto kept = whole;
  ASSERT_TRUE(keep_steps(kept, {}));
  EXPECT_EQ(kept.events.size() + 2, whole.events.size());
}

TEST(KeptSteps, NamesScopesAndSegmentsGoWithTheirEvents) {
  auto kept = training(9);
  const auto segments = [](const trace::Trace& trace) {
    return std::ranges::count(trace.events, EventKind::kSegmentAlloc, &trace::Event::kind);
  };
  ASSERT_TRUE(keep_steps(kept, {4, 4}));
  EXPECT_EQ(segments(kept), 10);
  ASSERT_EQ(kept.names.size(), 2U);
  EXPECT_EQ(kept.events[kept.names[0].event].requested_bytes, 1000);
  EXPECT_EQ(kept.events[kept.names[1].event].phase, trace::Phase::kBackward);
  EXPECT_EQ(std::ranges::count(kept.events, EventKind::kOutOfMemory, &trace::Event::kind), 1);
  std::uint64_t event = 0;
  int open = 0;
  for (const auto& mark : kept.scopes) {
    EXPECT_GE(mark.event, event);
    event = mark.event;
    if (mark.kind == trace::ScopeKind::kUpdate) open += mark.ends ? -1 : 1;
    EXPECT_TRUE(open == 0 || open == 1);
  }
  EXPECT_EQ(open, 0);
  EXPECT_EQ(std::ranges::count(kept.scopes, trace::ScopeKind::kUpdate, &trace::ScopeMark::kind), 2);
}

TEST(KeptSteps, TheStepThatMemoryRanOutInStays) {
  auto whole = training(4);
  auto failure = whole.events.back();
  failure.kind = EventKind::kOutOfMemory;
  failure.requested_bytes = 1 << 30;
  failure.block_bytes = 0;
  whole.events.push_back(failure);
  auto kept = whole;
  ASSERT_TRUE(keep_steps(kept, {2, 2}));
  EXPECT_EQ(kept.events.back().kind, EventKind::kOutOfMemory);
  EXPECT_EQ(kept.counted_steps, (std::vector<trace::StepSpan>{{1, 1}, {3, 3}}));
  EXPECT_EQ(alive_in(kept, {4, 4}), alive_in(whole, {4, 4}));
}

TEST(KeptSteps, WhereNoneCameAllStays) {
  auto trace = training(2);
  const auto events = trace.events.size();
  EXPECT_FALSE(keep_steps(trace, {3, 9}));
  EXPECT_EQ(trace.events.size(), events);
}

}  // namespace
}  // namespace peakbench::programs
