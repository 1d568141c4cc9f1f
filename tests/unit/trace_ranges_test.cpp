// What a program reaches and holds in its ranges, in private pools and in CUDA graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_trace.h"
#include "trace/timeline.h"

namespace peakbench::trace {
namespace {

using testing::ElementsAre;

std::string text_of(const Trace& trace, const RangePeak& peak) {
  return range_name(trace, peak.range) + " " + std::to_string(peak.highest_bytes) + " " +
         std::to_string(peak.alive_bytes);
}

std::vector<std::string> peaks_of(const FakeTrace& fake, std::uint64_t event) {
  std::vector<std::string> texts;
  for (const auto& peak : range_peaks(fake.trace(), lifetimes(fake.trace()), event))
    texts.push_back(text_of(fake.trace(), peak));
  return texts;
}

TEST(TraceRanges, HaveAPeakAndShareOfTheWhole) {
  FakeTrace fake("cuda:0");
  const auto model = fake.alloc(1000, 1024);
  fake.forward(0).within({"epoch", "rollout"});
  const auto samples = fake.alloc(4000, 4096);
  const auto other = fake.in("cpu").alloc(1 << 20);  // not of this space
  fake.in("cuda:0").within({"epoch"}).free(samples);
  fake.within({"epoch", "update"});
  const auto big = fake.alloc(8000, 8192);
  const auto peak = fake.trace().events.size() - 1;
  fake.within({}).free(big).free(other).free(model);
  EXPECT_THAT(peaks_of(fake, peak),
              ElementsAre("epoch 9216 8192", "epoch > update 9216 8192", "epoch > rollout 5120 0"));
  EXPECT_EQ(range_name(fake.trace(), kNone), "");
}

TEST(TraceRanges, OneThatOnlyFreesBeginsWithWhatThereWas) {
  FakeTrace fake("cuda:0");
  const auto all = fake.alloc(1000, 1024);
  fake.within({"clean up"}).free(all);
  EXPECT_THAT(peaks_of(fake, 0), ElementsAre("clean up 1024 0"));
}

TEST(TraceRanges, AProgramWithoutHasNone) {
  FakeTrace fake("cuda:0");
  fake.alloc(1000, 1024);
  EXPECT_TRUE(peaks_of(fake, 0).empty());
}

TEST(PrivatePools, AreToldOfTheMostThatTheyHad) {
  FakeTrace fake("cuda:0");
  fake.segment(EventKind::kSegmentAlloc, 900).segment(EventKind::kSegmentFree, 800);
  fake.capture(0).segment(EventKind::kSegmentAlloc, 30).capture(kNone);
  fake.segment(EventKind::kSegmentAlloc, 10);
  fake.in("cuda:1").segment(EventKind::kSegmentAlloc, 1000);
  const auto pools = private_pools(fake.trace());
  EXPECT_EQ(pools.reserved_bytes, 130);
  EXPECT_EQ(pools.private_bytes, 30);
}

TEST(GraphPool, IsWhatACaptureLeavesAndNobodyNames) {
  FakeTrace fake("cuda:0");
  fake.forward(0);
  fake.alloc(1, 512);
  fake.capture(0);
  const auto output = fake.alloc(100, 512);
  const auto hidden = fake.alloc(200, 512);
  fake.named(Role::kGradient, "weight");
  const auto gradient = fake.alloc(300, 512);
  const auto temporary = fake.alloc(400, 512);
  fake.free(temporary).alloc(1, 512);
  fake.backward(0).free(hidden);
  const auto last = fake.alloc(500, 512);
  fake.capture(kNone);
  const auto pool_of_mine = fake.alloc(600, 1024);
  fake.trace().events[pool_of_mine].pool = 1;  // torch.cuda.MemPool: no capture
  fake.free(output);
  const auto found = lifetimes(fake.trace());
  const auto category = [&](FakeTrace::Allocation of) {
    for (const auto& lifetime : found)
      if (lifetime.first == of) return lifetime.category;
    return Category::kAllocatorSlack;
  };
  EXPECT_EQ(category(output), Category::kGraphPool);
  EXPECT_EQ(category(last), Category::kGraphPool);
  EXPECT_EQ(category(hidden), Category::kActivation);
  EXPECT_EQ(category(gradient), Category::kGradient);
  EXPECT_EQ(category(temporary), Category::kTemporary);
  EXPECT_EQ(category(pool_of_mine), Category::kTemporary);
}

}  // namespace
}  // namespace peakbench::trace
