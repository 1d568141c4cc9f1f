// What is alive, the timeline, the waterfall and the explanation of fake traces with known answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "support/fake_trace.h"
#include "support/synthetic_trace.h"
#include "trace/alive.h"
#include "trace/explain.h"
#include "trace/timeline.h"
#include "trace/waterfall.h"

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
          ASSERT_EQ(total(parts_at(trace, found, i, space)), levels[i]);
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
    EXPECT_EQ(sample.lowest_allocated_bytes, *std::min_element(begin, end));
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

// ---- alive ----

constexpr std::uint64_t kAllAlive = 6;  // the last allocation of layers()

FakeTrace layers() {
  FakeTrace fake("cuda:0");
  fake.at("", "aten::empty");
  fake.named(Role::kParameter, "encoder.layers.0.weight", "[10, 20]", "fp32").alloc(800, 1024);
  fake.named(Role::kParameter, "encoder.layers.1.weight").alloc(1500, 1536);
  fake.named(Role::kParameter, "scale").alloc(4, 512);
  fake.forward(0).at("encoder.layers.0", "aten::addmm");
  const auto large = fake.alloc(5000, 5120);
  const auto small = fake.at("encoder.layers.0", "aten::gelu").alloc(600, 1024);
  const auto output = fake.at("", "").alloc(100, 512);
  fake.in("cpu").alloc(77);
  fake.backward(0).free(large).free(small).free(output);
  return fake;
}

const AliveNode& node(const AliveNode& parent, const std::string& label) {
  for (const auto& child : parent.children)
    if (child.label == label) return child;
  throw std::runtime_error("no child " + label);
}

TEST(Alive, ATreeOfModulesOperatorsAndAllocations) {
  const auto fake = layers();
  const auto found = lifetimes(fake.trace());
  const auto alive = alive_at(fake.trace(), found, kAllAlive);
  EXPECT_EQ(alive.allocated_bytes, 1024 + 1536 + 512 + 5120 + 1024 + 512);
  EXPECT_EQ(alive.requested_bytes, 800 + 1500 + 4 + 5000 + 600 + 100);
  EXPECT_EQ(alive.phase, Phase::kForward);
  EXPECT_EQ(alive.root.bytes, alive.allocated_bytes);
  EXPECT_EQ(alive.root.allocations, 6);
  EXPECT_DOUBLE_EQ(alive.root.share, 1.0);
  std::vector<std::string> top;
  for (const auto& child : alive.root.children) top.push_back(child.label);
  EXPECT_THAT(top, ElementsAre("encoder", "(root)", "(no module)"));
  const auto& all = node(node(alive.root, "encoder"), "layers");
  EXPECT_EQ(all.bytes, 1024 + 1536 + 5120 + 1024);
  const auto& layer = node(all, "0");
  EXPECT_EQ(&layer, &all.children[0]) << "the largest first";
  EXPECT_EQ(layer.kind, AliveNode::Kind::kModule);
  ASSERT_EQ(layer.children.size(), 3U);
  const auto& addmm = layer.children[0];
  EXPECT_EQ(addmm.label, "aten::addmm");
  EXPECT_EQ(addmm.kind, AliveNode::Kind::kOperator);
  EXPECT_EQ(addmm.bytes, 5120);
  const auto& leaf = addmm.children.at(0);
  EXPECT_EQ(leaf.kind, AliveNode::Kind::kAllocation);
  EXPECT_EQ(leaf.label, "activation");
  EXPECT_EQ(alive.allocations[leaf.allocation].event, 3U);
  EXPECT_DOUBLE_EQ(leaf.share, 5120.0 / static_cast<double>(alive.allocated_bytes));
  EXPECT_EQ(node(node(layer, "aten::empty"), "encoder.layers.0.weight").bytes, 1024);
  EXPECT_EQ(node(node(alive.root, "(no module)"), "(no operator)").bytes, 512);
}

TEST(Alive, TheLargestAllocationsFirstWithWhatIsKnownOfThem) {
  const auto fake = layers();
  const auto found = lifetimes(fake.trace());
  const auto alive = alive_at(fake.trace(), found, kAllAlive);
  ASSERT_EQ(alive.allocations.size(), 6U);
  EXPECT_EQ(alive.allocations[0].block_bytes, 5120);
  EXPECT_EQ(alive.allocations[0].module, "encoder.layers.0");
  EXPECT_EQ(alive.allocations[0].op, "aten::addmm");
  EXPECT_EQ(alive.allocations[0].category, Category::kActivation);
  const auto& weight = alive.allocations[2];
  EXPECT_EQ(weight.name, "encoder.layers.0.weight") << "of equal size: the older first";
  EXPECT_EQ(weight.module, "encoder.layers.0");
  EXPECT_EQ(weight.shape, "[10, 20]");
  EXPECT_EQ(weight.dtype, "fp32");
  EXPECT_EQ(weight.requested_bytes, 800);
}

TEST(Alive, WhatHasNoModuleStandsWhereItsNameSays) {
  FakeTrace fake;
  fake.named(Role::kOptimizerState, "encoder.ln.weight.exp_avg").alloc(10);
  fake.named(Role::kOptimizerState, "scale.exp_avg").alloc(9);
  fake.named(Role::kOptimizerState, "exp_avg").alloc(8);
  fake.named(Role::kGradient, "encoder.ln.weight").alloc(7);
  fake.named(Role::kInput, "batch.image").alloc(6);
  std::vector<std::string> modules;
  for (const auto& found : alive_at(fake.trace(), lifetimes(fake.trace()), 4).allocations)
    modules.push_back(found.module);
  EXPECT_THAT(modules, ElementsAre("encoder.ln", "(root)", "", "encoder.ln", ""));
}

TEST(Alive, OnlyWhatIsAliveThenInThatSpace) {
  FakeTrace fake;
  const auto gone = fake.alloc(100);
  fake.free(gone);
  const auto kept = fake.alloc(50);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(alive_at(fake.trace(), found, gone).allocated_bytes, 100);
  EXPECT_EQ(alive_at(fake.trace(), found, gone + 1).allocated_bytes, 0);
  EXPECT_EQ(alive_at(fake.trace(), found, kept).allocated_bytes, 50);
  EXPECT_THROW(alive_at(fake.trace(), found, 3), std::out_of_range);
  const auto two = layers();
  EXPECT_EQ(alive_at(two.trace(), lifetimes(two.trace()), kAllAlive, 1).allocated_bytes, 77);
}

// ---- waterfall and explanation ----

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

TEST(Explanation, WhatWasRemovedAtThePeakLowersIt) {
  EXPECT_EQ(explain(anatomy_of({.activation = 1, .gradient = 1, .temporary = 2}),
                    anatomy_of({.activation = 1, .gradient = 1, .temporary = 1}), "baseline",
                    "foreach-off"),
            "The peak of baseline is 6.00 GiB, in the optimizer step (aten::_foreach_sqrt). There "
            "foreach-off changes temporary by -1.00 GiB. The peak is now 5.00 GiB (-16.7%), in "
            "backward (AddmmBackward0), where the highest moment was 5.00 GiB.");
}

TEST(Explanation, WhatIsRemovedElsewhereDoesNot) {
  EXPECT_EQ(
      explain(anatomy_of({.activation = 2, .gradient = 1, .temporary = 3}),
              anatomy_of({.activation = 1, .gradient = 1, .temporary = 3}), "baseline",
              "checkpointing"),
      "The peak of baseline is 7.00 GiB, in the optimizer step (aten::_foreach_sqrt). "
      "checkpointing changes nothing of weight there. The peak stays at 7.00 GiB (+0.00%), in "
      "the optimizer step (aten::_foreach_sqrt). What checkpointing saves is in forward, "
      "where the highest moment falls from 5.00 GiB to 4.00 GiB (activation by -1.00 GiB).");
}

TEST(Explanation, APeakThatRises) {
  EXPECT_EQ(
      explain(anatomy_of({.activation = 1, .gradient = 1, .temporary = 2}),
              anatomy_of({.activation = 1, .gradient = 1, .temporary = 3}), "baseline", "slow"),
      "The peak of baseline is 6.00 GiB, in the optimizer step (aten::_foreach_sqrt). There "
      "slow changes temporary by +1.00 GiB. The peak rises to 7.00 GiB (+16.7%), still in the "
      "optimizer step (aten::_foreach_sqrt).");
}

TEST(Explanation, AStrategyWithoutThatPhase) {
  FakeTrace fused;
  fused.named(Role::kParameter, "weight").alloc(kGib);
  fused.forward(0).alloc(kGib / 2);
  fused.backward(0).at("encoder", "aten::mul").in_update(true).alloc(kGib / 4);
  EXPECT_EQ(explain(anatomy_of({}), anatomy(fused.trace(), lifetimes(fused.trace())), "baseline",
                    "fused-in-backward"),
            "The peak of baseline is 5.00 GiB, in backward (AddmmBackward0). There "
            "fused-in-backward changes optimizer_state by -2.00 GiB, gradient by -1.00 GiB, "
            "activation by -0.500 GiB and temporary by +0.250 GiB. The peak is now 1.75 GiB "
            "(-65.0%), still in backward, inside a parameter update (aten::mul).");
  EXPECT_EQ(explain(anatomy_of({.temporary = 2}), anatomy(fused.trace(), lifetimes(fused.trace())),
                    "baseline", "fused"),
            "The peak of baseline is 6.00 GiB, in the optimizer step (aten::_foreach_sqrt). With "
            "fused, nothing is allocated there. The peak is now 1.75 GiB (-70.8%), in backward, "
            "inside a parameter update (aten::mul), where the highest moment was 5.00 GiB.");
}

TEST(Explanation, OfNothing) {
  const auto nothing = anatomy(FakeTrace().trace(), {});
  EXPECT_EQ(explain(nothing, nothing, "a", "b"),
            "The peak of a is 0 bytes, in the build. b changes nothing of weight there. The peak "
            "stays at 0 bytes (+0.00%), in the build.");
}

}  // namespace
}  // namespace peakbench::trace
