// Sums at every event, the timeline and its phases, of fake traces with known answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "support/fake_trace.h"
#include "support/synthetic_trace.h"
#include "trace/alive.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace peakbench::trace {
namespace {

using testing::ElementsAre;

// Allocations and frees in any order, checked against the simplest account there is.
FakeTrace random_trace(unsigned seed) {
  std::mt19937 random(seed);
  FakeTrace fake("cuda:0");
  std::vector<FakeTrace::Allocation> alive;
  for (int i = 0; i < 3000; ++i) {
    const int step = i < 200 ? kNone : (i - 200) / 1000;
    if (step == kNone) {
      fake.build();
    } else {
      const std::array<Phase, 3> phases = {Phase::kForward, Phase::kBackward,
                                           Phase::kOptimizerStep};
      const auto phase = phases[static_cast<std::size_t>((i - 200) % 1000 / 334)];
      phase == Phase::kForward    ? fake.forward(step)
      : phase == Phase::kBackward ? fake.backward(step)
                                  : fake.optimizer_step(step);
    }
    fake.in(random() % 8 == 0 ? "cpu" : "cuda:0");
    if (alive.empty() || random() % 100 < 53) {
      if (random() % 10 == 0) fake.named(static_cast<Role>(random() % kRoleCount), "name");
      const auto requested = static_cast<std::int64_t>(1 + random() % 10000);
      alive.push_back(fake.alloc(requested, (requested + 511) / 512 * 512));
    } else {
      const auto at = alive.begin() + static_cast<std::ptrdiff_t>(random() % alive.size());
      fake.free(*at);
      alive.erase(at);
    }
  }
  return fake;
}

// allocated[event] of a space, from the events alone.
std::vector<std::int64_t> account(const Trace& trace, int space) {
  std::vector<std::int64_t> levels;
  std::int64_t level = 0;
  for (const auto& event : trace.events) {
    const auto sign = event.kind == EventKind::kAlloc ? 1 : event.kind == EventKind::kFree ? -1 : 0;
    if (event.space == space) level += sign * event.block_bytes;
    levels.push_back(level);
  }
  return levels;
}

std::int64_t sum(const std::array<std::int64_t, kCategoryCount>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

TEST(Sums, EqualTheAllocatedBytesAtEveryEvent) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    const auto fake = random_trace(seed);
    const auto& trace = fake.trace();
    const auto found = lifetimes(trace);
    for (int space = 0; space < 2; ++space) {
      const auto levels = account(trace, space);
      const auto every = timeline(trace, found, trace.events.size(), space);
      ASSERT_EQ(every.samples.size(), levels.size());
      for (std::size_t i = 0; i < levels.size(); ++i) {
        ASSERT_EQ(every.samples[i].allocated_bytes, levels[i]) << "event " << i;
        ASSERT_EQ(sum(every.samples[i].by_category), levels[i]) << "event " << i;
        for (const auto bytes : every.samples[i].by_category) ASSERT_GE(bytes, 0);
        if (i % 97 == 0) {
          ASSERT_EQ(total(breakdown_at(trace, found, i, space)), levels[i]);
          ASSERT_EQ(alive_at(trace, found, i, space).root.bytes, levels[i]);
        }
      }
      const auto peak = find_peak(trace, found, space);
      const auto maximum = std::max_element(levels.begin() + 199, levels.end());
      EXPECT_EQ(peak.allocated_bytes, *maximum);
      EXPECT_EQ(peak.event, static_cast<std::uint64_t>(maximum - levels.begin()));
      EXPECT_EQ(sum(peak.by_category), *maximum);
      EXPECT_EQ(anatomy(trace, found, space).peak.allocated_bytes, *maximum);
    }
    const auto memory = summarise(trace, found);
    const auto described = anatomy(trace, found);
    for (const auto phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizerStep})
      EXPECT_EQ(described.phases[static_cast<std::size_t>(phase)]->allocated_bytes,
                memory.phases.at(to_string(phase)).peak_allocated_bytes);
  }
}

TEST(Sums, AreOfTheOwnSpaceUnlessAnotherIsAskedFor) {
  FakeTrace fake("cuda:0");
  fake.forward(0).alloc(900);
  fake.own("cuda:1").in("cuda:1").alloc(70);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(timeline(fake.trace(), found, 10).samples.back().allocated_bytes, 70);
  EXPECT_EQ(timeline(fake.trace(), found, 10).space, 1);
  EXPECT_EQ(timeline_levels(fake.trace(), found, {10})[0].samples.back().allocated_bytes, 70);
  EXPECT_EQ(total(breakdown_at(fake.trace(), found, 1)), 70);
  EXPECT_EQ(anatomy(fake.trace(), found).peak.allocated_bytes, 70);
  EXPECT_EQ(anatomy(fake.trace(), found, 0).peak.allocated_bytes, 900);
}

TEST(Timeline, KeepsTheMaximumOfEveryBucket) {
  const auto fake = random_trace(1);
  const auto& trace = fake.trace();
  const auto found = lifetimes(trace);
  const auto levels = account(trace, 0);
  const auto coarse = timeline(trace, found, 70);
  ASSERT_EQ(coarse.samples.size(), 70U);
  std::uint64_t next = 0;
  for (const auto& sample : coarse.samples) {
    EXPECT_EQ(sample.first, next) << "no gaps";
    next = sample.last;
    const auto begin = levels.begin() + static_cast<std::ptrdiff_t>(sample.first);
    const auto end = levels.begin() + static_cast<std::ptrdiff_t>(sample.last);
    EXPECT_EQ(sample.allocated_bytes, *std::max_element(begin, end));
    const auto first = std::max_element(begin, end) - levels.begin();
    EXPECT_EQ(sample.event, static_cast<std::uint64_t>(first)) << "the first of equals";
    EXPECT_EQ(sum(sample.by_category), sample.allocated_bytes);
  }
  EXPECT_EQ(next, trace.events.size());
}

TEST(Timeline, ARangeIsShownInDetail) {
  const auto fake = random_trace(2);
  const auto found = lifetimes(fake.trace());
  const auto levels = account(fake.trace(), 0);
  const auto part = timeline(fake.trace(), found, 1000, 0, 500, 520);
  ASSERT_EQ(part.samples.size(), 20U) << "no more samples than events";
  for (std::size_t i = 0; i < 20; ++i) EXPECT_EQ(part.samples[i].allocated_bytes, levels[500 + i]);
  EXPECT_EQ(timeline(fake.trace(), found, 10, 0, 2990).last, 3000U);
  EXPECT_TRUE(timeline(fake.trace(), found, 0).samples.empty());
  EXPECT_TRUE(timeline(fake.trace(), found, 10, 0, 5000).samples.empty());
}

TEST(Timeline, LevelsOfDetailAgree) {
  const auto fake = random_trace(3);
  const auto found = lifetimes(fake.trace());
  const auto levels = timeline_levels(fake.trace(), found, {10, 100, 5000});
  ASSERT_EQ(levels.size(), 3U);
  EXPECT_EQ(levels[0].samples.size(), 10U);
  EXPECT_EQ(levels[2].samples.size(), 3000U);
  const auto alone = timeline(fake.trace(), found, 100);
  for (std::size_t i = 0; i < 100; ++i)
    EXPECT_EQ(levels[1].samples[i].event, alone.samples[i].event);
}

TEST(Timeline, ReservedStandsAboveAllocated) {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 2048).alloc(100, 512);
  fake.segment(EventKind::kSegmentMap, 1000).segment(EventKind::kSegmentUnmap, 400);
  const auto found = timeline(fake.trace(), lifetimes(fake.trace()), 4);
  EXPECT_EQ(found.samples[0].reserved_bytes, 2048);
  EXPECT_EQ(found.samples[2].reserved_bytes, 3048);
  EXPECT_EQ(found.samples[3].reserved_bytes, 2648);
  EXPECT_EQ(found.samples[3].allocated_bytes, 512);
}

TEST(Timeline, PhasesAreSpans) {
  FakeTrace fake;
  fake.alloc(1);
  fake.forward(0).alloc(1);
  fake.alloc(1);
  fake.backward(0).alloc(1);
  fake.forward(1).alloc(1);
  for (std::size_t i = 0; i < 5; ++i) fake.trace().events[i].time_ns = static_cast<int>(i) * 100;
  std::vector<std::tuple<Phase, int, std::uint64_t, std::uint64_t, std::int64_t, std::int64_t>>
      spans;
  for (const auto& span : phase_spans(fake.trace()))
    spans.emplace_back(span.phase, span.step, span.first, span.last, span.first_ns, span.last_ns);
  EXPECT_THAT(spans, ElementsAre(std::tuple(Phase::kBuild, kNone, 0, 1, 0, 100),
                                 std::tuple(Phase::kForward, 0, 1, 3, 100, 300),
                                 std::tuple(Phase::kBackward, 0, 3, 4, 300, 400),
                                 std::tuple(Phase::kForward, 1, 4, 5, 400, 400)));
}

}  // namespace
}  // namespace peakbench::trace
