// The parts of peaks: what they sum to, and how they are kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/errors.h"
#include "reports/analysis/causes.h"
#include "support/fake_runs.h"

namespace peakbench::analysis {
namespace {

using ::testing::HasSubstr;

TEST(Parts, SumToEachPhasesPeak) {
  const auto trace = peakbench::testing::tiny_trace(true);
  const auto memory = trace::summarise(trace);
  std::map<std::string, std::int64_t> sums;
  for (const auto& part : parts_of(trace)) sums[part.phase] += part.block_bytes;
  ASSERT_EQ(sums.size(), memory.phases.size());
  for (const auto& [phase, peak] : memory.phases)
    EXPECT_EQ(sums[phase], peak.peak_allocated_bytes) << phase;
}

TEST(Parts, KnowWhereTheBytesCameFrom) {
  std::vector<Part> of_forward;
  for (const auto& part : parts_of(peakbench::testing::tiny_trace(true)))
    if (part.phase == "forward") of_forward.push_back(part);
  const Part kept{"forward", "forward", "kept", "encoder.layers.0", "aten::empty", 1, 512};
  EXPECT_THAT(of_forward, ::testing::Contains(kept));
}

TEST(Parts, AreOfTheOwnSpace) {
  trace::FakeTrace fake("cuda:0");
  fake.forward(0).alloc(9000, 9216);
  fake.own("cuda:1").in("cuda:1").alloc(100, 512);
  const auto parts = parts_of(fake.trace());
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].block_bytes, 512);
  EXPECT_EQ(alive_at_maxima(fake.trace()).at("forward").allocated_bytes, 512);
}

TEST(Parts, ComeBackFromJson) {
  const std::vector<CaseParts> cases{{"one", parts_of(peakbench::testing::tiny_trace(true))},
                                     {"other", {}}};
  EXPECT_EQ(parts_from_json(to_json(cases)), cases);
  auto wrong = to_json(cases);
  wrong["cases"][0]["parts"][0][2] = 999;
  EXPECT_THAT(testing::message_of<ConfigError>([&] { parts_from_json(wrong); }),
              HasSubstr("/cases/0/parts/0/2: expected an index in words, got 999"));
  wrong["cases"][0]["parts"][0] = {1, 2};
  EXPECT_THAT(testing::message_of<ConfigError>([&] { parts_from_json(wrong); }),
              HasSubstr("seven numbers"));
}

TEST(Parts, TraceWithoutStepsHasOnlyItsBuild) {
  trace::FakeTrace fake("cuda:0");
  fake.named(trace::Role::kParameter, "weight").alloc(100, 512);
  const auto parts = parts_of(fake.trace());
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].phase, "build");
  EXPECT_EQ(parts[0].module, "(root)");
}

}  // namespace
}  // namespace peakbench::analysis
