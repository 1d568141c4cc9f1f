// Lifetimes, categories, the peak and the summary of fake traces with known answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "base/errors.h"
#include "support/fake_trace.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/summary.h"
#include "trace_errors.h"

namespace peakbench::trace {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

Category category(const FakeTrace& fake, FakeTrace::Allocation allocation) {
  for (const auto& lifetime : lifetimes(fake.trace()))
    if (lifetime.first == allocation) return lifetime.category;
  ADD_FAILURE() << "event " << allocation << " is no allocation";
  return Category::kTemporary;
}

// A linear layer trained for two steps with Adam, on a card.
FakeTrace two_steps() {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 4096);
  fake.named(Role::kParameter, "linear.weight").alloc(1000, 1024);
  const auto scratch = fake.alloc(500, 512);
  fake.free(scratch);
  fake.named(Role::kInput, "input").alloc(100, 512);
  for (int step = 0; step < 2; ++step) {
    fake.forward(step);
    if (step == 0) fake.named(Role::kWorkspace, "cuBLAS workspace").alloc(2000, 2048);
    const auto hidden = fake.alloc(300, 512);
    const auto temporary = fake.alloc(10, 512);
    fake.free(temporary);
    fake.backward(step).segment(EventKind::kSegmentAlloc, 8192);
    const auto gradient = fake.named(Role::kGradient, "linear.weight").alloc(1000, 1024);
    fake.free(hidden);
    fake.optimizer_step(step);
    if (step == 0) fake.named(Role::kOptimizerState, "linear.weight.exp_avg").alloc(1000, 1024);
    const auto update = fake.alloc(900, 1024);
    fake.free(update).free(gradient).segment(EventKind::kSegmentFree, 8192);
  }
  return fake;
}

TEST(Lifetimes, PairsAllocsWithFrees) {
  FakeTrace fake;
  const auto kept = fake.alloc(100);
  const auto freed = fake.alloc(50);
  fake.free(freed);
  const auto again = fake.reuse(freed, 20);
  fake.free(again);
  const auto found = lifetimes(fake.trace());
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].first, kept);
  EXPECT_EQ(found[0].last, 5U) << "alive at the end";
  EXPECT_EQ(found[1].last, 2U);
  EXPECT_EQ(found[1].released, 2U);
  EXPECT_EQ(found[2].first, 3U);
  EXPECT_EQ(found[2].last, 4U);
}

TEST(Lifetimes, ABlockAStreamStillUsesIsFreedAtOnceAndReleasedLater) {
  FakeTrace fake("cuda:0");
  fake.forward(0);
  const auto block = fake.alloc(100, 512);
  fake.free_requested(block);
  fake.alloc(10, 512);
  fake.free(block);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(found[0].last, 1U);
  EXPECT_EQ(found[0].released, 3U);
  const auto memory = summarise(fake.trace());
  EXPECT_EQ(memory.peak_allocated_bytes, 512) << "freed blocks are not allocated";
  EXPECT_EQ(memory.peak_requested_bytes, 110) << "requested bytes count until released";
}

TEST(Lifetimes, SpacesHaveAddressesOfTheirOwn) {
  FakeTrace fake("cuda:0");
  const auto card = fake.alloc(100, 512);
  const auto host = fake.in("cpu").reuse(card, 50);
  fake.free(host).free(card);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(found[0].last, 3U);
  EXPECT_EQ(found[1].last, 2U);
}

TEST(Lifetimes, NothingIsMadeOfAnAllocationOfNoBytes) {
  FakeTrace fake;
  fake.trace().events.assign(4, Event{});  // address 0, no bytes
  fake.trace().events[1].kind = EventKind::kFree;
  EXPECT_TRUE(lifetimes(fake.trace()).empty());
}

TEST(Categories, ANameWinsAndTheFirstOneGiven) {
  FakeTrace fake;
  fake.forward(0);
  const auto tied = fake.named(Role::kParameter, "embedding.weight")
                        .named(Role::kBuffer, "output.weight")
                        .alloc(100);
  const auto buffer = fake.named(Role::kBuffer, "mask").alloc(10);
  fake.backward(0);
  const auto gradient = fake.named(Role::kGradient, "w").alloc(10);
  const auto state = fake.named(Role::kOptimizerState, "w").alloc(10);
  const auto input = fake.named(Role::kInput, "x").alloc(10);
  EXPECT_EQ(category(fake, tied), Category::kParameter);
  EXPECT_EQ(category(fake, buffer), Category::kBuffer);
  EXPECT_EQ(category(fake, gradient), Category::kGradient);
  EXPECT_EQ(category(fake, state), Category::kOptimizerState);
  EXPECT_EQ(category(fake, input), Category::kInput);
  const auto all = lifetimes(fake.trace());
  EXPECT_EQ(fake.trace().names[static_cast<std::size_t>(all[0].name)].name, "embedding.weight");
}

TEST(Categories, AnActivationOutlivesItsForward) {
  FakeTrace fake;
  fake.forward(0);
  const auto kept = fake.alloc(100);
  const auto dropped = fake.alloc(100);
  fake.free(dropped);
  fake.backward(0);
  const auto in_backward = fake.alloc(100);
  fake.free(kept).free(in_backward);
  EXPECT_EQ(category(fake, kept), Category::kActivation);
  EXPECT_EQ(category(fake, dropped), Category::kTemporary);
  EXPECT_EQ(category(fake, in_backward), Category::kTemporary);
}

TEST(Categories, EveryMicroBatchHasAForwardOfItsOwn) {
  FakeTrace fake;
  fake.forward(0);
  const auto first = fake.alloc(100);
  fake.backward(0).free(first).forward(0);
  const auto second = fake.alloc(100);
  const auto temporary = fake.alloc(100);
  fake.free(temporary).backward(0).free(second);
  EXPECT_EQ(category(fake, first), Category::kActivation);
  EXPECT_EQ(category(fake, second), Category::kActivation);
  EXPECT_EQ(category(fake, temporary), Category::kTemporary);
}

TEST(Categories, RecomputedActivationsOutliveTheirRecomputation) {
  FakeTrace fake;
  fake.forward(0).alloc(1);
  fake.backward(0).recompute(0);
  const auto kept = fake.alloc(100);
  const auto dropped = fake.alloc(100);
  fake.free(dropped).recompute(1);
  const auto other = fake.alloc(100);
  fake.end_recompute().free(kept).free(other);
  EXPECT_EQ(category(fake, kept), Category::kRecomputedActivation);
  EXPECT_EQ(category(fake, dropped), Category::kTemporary);
  EXPECT_EQ(category(fake, other), Category::kRecomputedActivation);
}

// A plugin's residual, which forward or backward allocates and nobody frees, is no library's.
TEST(Categories, AWorkspaceIsWhatIsNamedOne) {
  FakeTrace fake("cuda:0");
  const auto built = fake.named(Role::kWorkspace, "cuBLAS workspace").alloc(100, 512);
  fake.forward(0);
  const auto workspace = fake.named(Role::kWorkspace, "cuBLAS workspace").alloc(100, 512);
  const auto of_forward = fake.alloc(100, 512);
  fake.backward(0).recompute(0);
  const auto recomputed = fake.alloc(100, 512);
  fake.end_recompute();
  const auto residual = fake.alloc(100, 512);
  fake.forward(1).backward(1);
  const auto last = fake.alloc(100, 512);
  EXPECT_EQ(category(fake, built), Category::kWorkspace);
  EXPECT_EQ(category(fake, workspace), Category::kWorkspace);
  EXPECT_EQ(category(fake, of_forward), Category::kKept) << "no backward had use of it";
  EXPECT_EQ(category(fake, recomputed), Category::kKept);
  EXPECT_EQ(category(fake, residual), Category::kKept);
  EXPECT_EQ(category(fake, last), Category::kTemporary) << "no later step is known";
}

TEST(Categories, WhatTheBuildLeftToNobodyIsKept) {
  FakeTrace fake("cuda:0");
  const auto weight = fake.named(Role::kParameter, "w").alloc(100, 512);
  const auto scratch = fake.alloc(100, 512);
  const auto table = fake.alloc(100, 512);
  const auto first = fake.alloc(100, 512);
  const auto host = fake.in("cpu").alloc(100);
  fake.in("cuda:0").free(scratch);
  fake.forward(0).free(first).alloc(1, 512);
  fake.optimizer_step(0).free(table);
  EXPECT_EQ(category(fake, weight), Category::kParameter);
  EXPECT_EQ(category(fake, scratch), Category::kTemporary);
  EXPECT_EQ(category(fake, table), Category::kKept) << "whenever it goes";
  EXPECT_EQ(category(fake, first), Category::kKept) << "alive when the steps begin";
  EXPECT_EQ(category(fake, host), Category::kKept) << "wherever it is";
}

// Averaged weights, say: made in the first update, read in every later one.
TEST(Categories, WhatAStepLeavesToLaterOnesIsKept) {
  for (const char* space : {"cpu", "cuda:0"}) {
    FakeTrace fake(space);
    fake.forward(0).alloc(1, 512);
    fake.optimizer_step(0);
    const auto average = fake.alloc(100, 512), exchanged = fake.alloc(100, 512),
               scratch = fake.alloc(100, 512);
    fake.free(scratch);
    fake.forward(1).free(exchanged).alloc(1, 512);
    fake.optimizer_step(1);
    const auto last = fake.alloc(100, 512);
    EXPECT_EQ(category(fake, average), Category::kKept) << space;
    EXPECT_EQ(category(fake, exchanged), Category::kKept) << "alive when the step begins";
    EXPECT_EQ(category(fake, scratch), Category::kTemporary);
    EXPECT_EQ(category(fake, last), Category::kTemporary) << "no later step is known";
  }
}

TEST(Categories, WhatFollowsACallOfAnEvaluationIsNoBatchWhereItOutlivesTheNext) {
  FakeTrace fake;
  fake.forward(0).alloc(1);
  std::vector<FakeTrace::Allocation> losses, labels;
  for (int i = 0; i < 3; ++i) {
    fake.data(0).from({fake.frame("train.py", "evaluate", 3)});
    labels.push_back(fake.alloc(8));
    if (i > 0) fake.free(labels[static_cast<std::size_t>(i) - 1]);
    fake.evaluation(0).free(fake.alloc(100));
    fake.data(0).from({fake.frame("train.py", "evaluate", 4)});
    losses.push_back(fake.alloc(1000));
  }
  fake.data(0).from({fake.frame("train.py", "main", 9)});
  const auto batch = fake.alloc(64);
  fake.free(labels.back()).forward(0).free(fake.alloc(1));
  for (const auto loss : losses) fake.free(loss);
  fake.free(batch);
  const auto found = lifetimes(fake.trace());
  std::map<std::uint64_t, Category> of;
  for (const auto& lifetime : found) of[lifetime.first] = lifetime.category;
  for (const auto loss : losses) EXPECT_EQ(of[loss], Category::kActivation) << loss;
  for (const auto label : labels) EXPECT_EQ(of[label], Category::kInput) << label;
  EXPECT_EQ(of[batch], Category::kInput);
}

TEST(Categories, TheLastOfAListIsKeptAsThoseBeforeItWere) {
  FakeTrace fake;
  std::vector<FakeTrace::Allocation> outputs, batches;
  for (int step = 0; step < 3; ++step) {
    fake.data(step).from({fake.frame("train.py", "main", 3)});
    if (step > 0) outputs.push_back(fake.alloc(1000));
    fake.from({fake.frame("train.py", "main", 4)});
    batches.push_back(fake.alloc(8));
    if (step > 0) fake.free(batches[static_cast<std::size_t>(step) - 1]);
    fake.forward(step).free(fake.alloc(1));
  }
  for (const auto output : outputs) fake.free(output);
  fake.free(batches.back());
  const auto found = lifetimes(fake.trace());
  std::map<std::uint64_t, Category> of;
  for (const auto& lifetime : found) of[lifetime.first] = lifetime.category;
  for (const auto output : outputs) EXPECT_EQ(of[output], Category::kKept) << output;
  for (const auto batch : batches) EXPECT_EQ(of[batch], Category::kInput) << batch;
}

TEST(Categories, ABuildThatRanOutOfMemoryKeptWhatItHad) {
  FakeTrace fake("cuda:0");
  const auto scratch = fake.alloc(100, 512);
  const auto layer = fake.free(scratch).alloc(100, 512);
  fake.out_of_memory(1 << 20);
  EXPECT_EQ(category(fake, scratch), Category::kTemporary);
  EXPECT_EQ(category(fake, layer), Category::kKept);
}

TEST(Categories, AFailureThatWasCaughtEndsNothing) {
  FakeTrace fake("cuda:0");
  fake.forward(0);
  const auto passing = fake.alloc(100, 512);
  fake.out_of_memory(1 << 20).free(passing);
  const auto smaller = fake.alloc(100, 512);
  fake.backward(0).free(smaller);
  EXPECT_EQ(category(fake, passing), Category::kTemporary) << "the forward went on without it";
  EXPECT_EQ(category(fake, smaller), Category::kActivation);
}

TEST(Categories, AForwardThatRanOutOfMemoryHeldActivations) {
  FakeTrace fake("cuda:0");
  fake.forward(0);
  const auto kept = fake.alloc(512), passing = fake.alloc(1024);
  fake.free(passing).out_of_memory(1 << 20).free(kept);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(found[0].category, Category::kActivation) << "alive when memory ran out";
  EXPECT_EQ(found[1].category, Category::kTemporary);
}

TEST(Peak, SumsToTheByte) {
  const auto fake = two_steps();
  const auto found = lifetimes(fake.trace());
  const auto peak = find_peak(fake.trace(), found);
  // weight, input, workspace, gradient, state, update: 1024 + 512 + 2048 + 3 x 1024
  EXPECT_EQ(peak.allocated_bytes, 6656);
  EXPECT_EQ(peak.requested_bytes, 1000 + 100 + 2000 + 1000 + 1000 + 900);
  EXPECT_EQ(std::accumulate(peak.by_category.begin(), peak.by_category.end(), std::int64_t{0}),
            6656);
  EXPECT_EQ(fake.trace().events[peak.event].requested_bytes, 900);
  EXPECT_EQ(fake.trace().events[peak.event].step, 0) << "the first maximum";
}

TEST(Peak, TheBuildIsNoStep) {
  FakeTrace fake;
  const auto large = fake.alloc(1000);
  fake.free(large).alloc(10);
  fake.forward(0).alloc(100);
  EXPECT_EQ(find_peak(fake.trace(), lifetimes(fake.trace())).allocated_bytes, 110);
}

TEST(Peak, TheLevelTheStepsBeginWithCounts) {
  FakeTrace fake;
  const auto large = fake.alloc(1000);
  fake.forward(0).free(large).alloc(10);
  const auto peak = find_peak(fake.trace(), lifetimes(fake.trace()));
  EXPECT_EQ(peak.allocated_bytes, 1000);
  EXPECT_EQ(peak.event, large);
  const auto memory = summarise(fake.trace());
  EXPECT_EQ(memory.peak_phase, "forward");
  EXPECT_EQ(memory.peak_step, 0);
}

TEST(Peak, ATraceWithoutStepsHasItsBuilds) {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 2048).alloc(1000, 1024);
  fake.out_of_memory(1);
  const auto memory = summarise(fake.trace());
  EXPECT_EQ(memory.peak_allocated_bytes, 1024);
  EXPECT_EQ(memory.peak_reserved_bytes, 2048);
  EXPECT_EQ(memory.peak_phase, "build");
  EXPECT_EQ(memory.steps, 0);
}

TEST(Summary, KnownAnswers) {
  const auto fake = two_steps();
  const auto memory = summarise(fake.trace());
  EXPECT_EQ(memory.peak_allocated_bytes, 6656);
  EXPECT_EQ(memory.peak_requested_bytes, 6000);
  EXPECT_EQ(memory.peak_reserved_bytes, 4096 + 8192);
  EXPECT_THAT(
      memory.at_peak,
      UnorderedElementsAre(Pair("parameter", 1000), Pair("input", 100), Pair("workspace", 2000),
                           Pair("gradient", 1000), Pair("optimizer_state", 1000),
                           Pair("temporary", 900), Pair("allocator_slack", 656)));
  EXPECT_EQ(memory.peak_phase, "optimizer_step");
  EXPECT_EQ(memory.peak_step, 0);
  EXPECT_EQ(memory.steps, 2);
  ASSERT_EQ(memory.phases.size(), 4U);
  EXPECT_EQ(memory.phases.at("build").peak_allocated_bytes, 1024 + 512);
  EXPECT_EQ(memory.phases.at("build").peak_requested_bytes, 1500);
  // Step 1: weight, input, workspace, state, hidden, temporary
  EXPECT_EQ(memory.phases.at("forward").peak_allocated_bytes, 1024 + 512 + 2048 + 1024 + 512 + 512);
  EXPECT_EQ(memory.phases.at("backward").peak_allocated_bytes,
            1024 + 512 + 2048 + 1024 + 512 + 1024);
  EXPECT_EQ(memory.phases.at("optimizer_step").peak_allocated_bytes, 6656);
}

TEST(Summary, APhaseBeginsWithTheLevelItFinds) {
  FakeTrace fake;
  fake.forward(0);
  const auto hidden = fake.alloc(100);
  fake.backward(0).free(hidden).alloc(10);
  EXPECT_EQ(summarise(fake.trace()).phases.at("backward").peak_allocated_bytes, 100);
}

TEST(Summary, SpacesStandBesideEachOther) {
  FakeTrace fake("cuda:0");
  fake.forward(0).alloc(100, 512);
  const auto host = fake.in("cpu").alloc(70);
  fake.free(host).alloc(50);
  const auto memory = summarise(fake.trace());
  EXPECT_EQ(memory.peak_allocated_bytes, 512);
  EXPECT_EQ(memory.spaces.at("cuda:0").peak_allocated_bytes, 512);
  EXPECT_EQ(memory.space, "cuda:0");
  EXPECT_EQ(memory.spaces.at("cpu").peak_allocated_bytes, 70);
  EXPECT_FALSE(memory.spaces.at("cpu").peak_reserved_bytes);
  EXPECT_FALSE(memory.peak_reserved_bytes) << "no segment was seen";
}

// A case on the second of two cards, some host memory beside it.
TEST(Summary, TheOwnSpaceNeedNotBeTheFirst) {
  FakeTrace fake("cuda:0");
  fake.own("cuda:1").alloc(4000, 4096);
  fake.in("cuda:1").segment(EventKind::kSegmentAlloc, 2048);
  fake.named(Role::kParameter, "weight").alloc(1000, 1024);
  fake.forward(0).alloc(100, 512);
  fake.in("cuda:0").alloc(9000, 9216);
  const auto memory = summarise(fake.trace());
  EXPECT_EQ(memory.space, "cuda:1");
  EXPECT_EQ(memory.peak_allocated_bytes, 1024 + 512);
  EXPECT_EQ(memory.peak_requested_bytes, 1000 + 100);
  EXPECT_EQ(memory.peak_reserved_bytes, 2048);
  EXPECT_EQ(memory.at_peak.at("parameter"), 1000);
  EXPECT_EQ(memory.phases.at("build").peak_allocated_bytes, 1024);
  EXPECT_EQ(memory.spaces.at("cuda:0").peak_allocated_bytes, 4096 + 9216);
  EXPECT_EQ(find_peak(fake.trace(), lifetimes(fake.trace())).allocated_bytes, 1024 + 512);
}

TEST(Summary, AnEmptyTraceIsNothing) {
  const auto memory = summarise(FakeTrace().trace());
  EXPECT_EQ(memory.peak_allocated_bytes, 0);
  EXPECT_TRUE(memory.at_peak.empty());
}

TEST(CorruptTrace, ErrorsNameTheEvent) {
  FakeTrace twice;
  const auto block = twice.alloc(100);
  twice.reuse(block, 100);
  EXPECT_THAT(error_of(twice.trace()), HasSubstr("event 1: address 0x7f0000000000 in cpu"));
  EXPECT_THAT(error_of(twice.trace()), HasSubstr("event 0"));

  FakeTrace freed;
  const auto gone = freed.alloc(100);
  freed.free(gone).free(gone);
  EXPECT_THAT(error_of(freed.trace()),
              HasSubstr("event 2: address 0x7f0000000000 in cpu is freed"));

  FakeTrace requested;
  const auto asked = requested.alloc(100);
  requested.free_requested(asked).free_requested(asked);
  EXPECT_THAT(error_of(requested.trace()), HasSubstr("event 2"));
  EXPECT_THAT(error_of(requested.trace()), HasSubstr("freed at event 1 already"));

  FakeTrace small;
  small.alloc(100, 64);
  EXPECT_THAT(error_of(small.trace()), HasSubstr("event 0: a block of 64 bytes"));

  FakeTrace resized;
  const auto sized = resized.alloc(100, 512);
  resized.free(sized).trace().events.back().block_bytes = 1024;
  EXPECT_THAT(error_of(resized.trace()), HasSubstr("event 1: a block of 1024 bytes"));

  FakeTrace misnamed;
  misnamed.free(misnamed.alloc(100)).trace().names.push_back({1, Role::kParameter, "w", "", ""});
  EXPECT_THAT(error_of(misnamed.trace()), HasSubstr("event 1: `w` names it"));

  FakeTrace nowhere;
  nowhere.alloc(100);
  nowhere.trace().events[0].space = 3;
  EXPECT_THAT(error_of(nowhere.trace()), HasSubstr("event 0: space 3 of 1"));
  nowhere.trace().events[0].space = 0;
  nowhere.trace().events[0].module = 7;
  EXPECT_THAT(error_of(nowhere.trace()), HasSubstr("event 0: module 7 of 0"));
}

TEST(Words, AreTheFieldsOwn) {
  EXPECT_STREQ(to_string(Category::kRecomputedActivation), "recomputed_activation");
  EXPECT_STREQ(to_string(Category::kAllocatorSlack), "allocator_slack");
  EXPECT_STREQ(to_string(Phase::kOptimizerStep), "optimizer_step");
  EXPECT_STREQ(to_string(EventKind::kOutOfMemory), "out_of_memory");
  EXPECT_STREQ(to_string(Role::kInput), "input");
}

}  // namespace
}  // namespace peakbench::trace
