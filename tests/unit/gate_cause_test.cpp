// Which cause a gate names, and when a difference is no regression.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/compare/gate.h"
#include "support/fake_runs.h"

namespace peakbench::compare {
namespace {

using compare::Direction;
using peakbench::testing::fake_case;
using peakbench::testing::FakeRun;
using peakbench::testing::plain_source;
using ::testing::HasSubstr;
using ::testing::Not;
using trace::FakeTrace;
using trace::Role;

// Two layers under an optimizer whose state is there from the first forward on in `with_state`; the
// peak is the optimizer step's, by its gradients and its temporary, which are larger then too.
trace::Trace training(bool with_state) {
  const std::int64_t large = with_state ? 2048 : 1024;
  FakeTrace fake("cuda:0");
  for (const char* layer : {"layers.0", "layers.1"})
    fake.named(Role::kParameter, std::string(layer) + ".weight", "[250]", "fp32").alloc(1000, 1024);
  FakeTrace::Allocation workspace = 0;
  for (int step = 0; step < 2; ++step) {
    fake.forward(step).at("layers.0", "aten::mm");
    fake.free(fake.alloc(512, 512));
    if (with_state && step == 0) {
      workspace = fake.named(Role::kWorkspace, "cuBLAS workspace").alloc(4096, 4096);
      for (const char* layer : {"layers.0", "layers.1"})
        for (const char* state : {".weight.exp_avg", ".weight.exp_avg_sq"})
          fake.named(Role::kOptimizerState, layer + std::string(state), "[250]", "fp32")
              .alloc(1000, 1024);
    }
    fake.backward(step);
    std::vector<FakeTrace::Allocation> gradients;
    for (const char* layer : {"layers.0", "layers.1"}) {
      fake.named(Role::kGradient, std::string(layer) + ".weight", "[250]", "fp32");
      gradients.push_back(fake.at(layer, "aten::mm").alloc(1000, large));
    }
    if (with_state && step == 1) fake.free(workspace);
    fake.optimizer_step(step).at("", "aten::sqrt");
    fake.free(fake.alloc(20000, with_state ? 20992 : 26624));
    for (const auto gradient : gradients) fake.free(gradient);
  }
  return fake.trace();
}

std::int64_t sum_of(const std::vector<analysis::CategoryCauses>& causes) {
  std::int64_t sum = 0;
  for (const auto& category : causes)
    for (const auto& cause : category.causes) sum += cause.block_difference();
  return sum;
}

TEST(GateCause, TheFigureThatGrewIsExplainedInItsOwnPhase) {
  const FakeRun base(training(false)), now(training(true));
  const auto found = compare::compare(base.source(), now.source(), {});
  const auto& one = found.cases.at(0);
  ASSERT_TRUE(one.at_peak);
  EXPECT_EQ(one.at_peak->phase, "optimizer_step");
  const auto *told = compare::telling_figure(one), *peak = told;
  ASSERT_NE(peak, nullptr);
  EXPECT_EQ(compare::explanation_of(one, *told), &*one.at_peak);
  EXPECT_EQ(sum_of(one.at_peak->causes), peak->now - peak->base) << "to the byte";
  for (const auto& growth : one.growth)
    EXPECT_EQ(sum_of(growth.causes), growth.block_bytes) << growth.phase;
  const auto decision = decide(found);
  EXPECT_EQ(decision.exit_code(), 4);
  const auto& sentence = decision.findings.at(0).sentence;
  EXPECT_EQ(sentence,
            "memory is worse: peak allocated +4,608 bytes (30,720 -> 35,328 bytes), in optimizer "
            "step: workspace +4,096 bytes: cuBLAS workspace, 1 tensor more; optimizer state +4,096 "
            "bytes: *.exp_avg, 2 tensors more (+2,048 bytes), *.exp_avg_sq, 2 tensors more (+2,048 "
            "bytes); gradient +2,048 bytes: layers.*, 2 tensors in larger blocks for the same "
            "bytes; −5,632 bytes in 1 more category. Also worse: forward allocated +8,192 bytes, "
            "backward allocated +10,240 bytes");
}

// The peak has moved: what it is made of now against what it was made of then.
TEST(GateCause, APeakInAnotherPhaseIsExplainedAgainstTheOldOne) {
  const FakeRun base(testing::tiny_trace(false));
  FakeTrace fake("cuda:0");
  fake.emulated();
  fake.named(Role::kParameter, "encoder.layers.0.weight", "[250]", "fp32").alloc(1000, 1024);
  fake.forward(0).at("encoder.layers.0", "aten::addmm");
  const auto hidden = fake.alloc(2000, 2048);
  fake.backward(0).free(hidden);
  fake.optimizer_step(0).at("", "aten::sqrt");
  fake.free(fake.alloc(9000, 9216));
  const FakeRun now(fake.trace());
  const auto found = compare::compare(base.source(), now.source(), {});
  const auto& one = found.cases.at(0);
  ASSERT_TRUE(one.at_peak);
  EXPECT_EQ(one.at_peak->base_phase, "backward");
  EXPECT_EQ(one.at_peak->phase, "optimizer_step");
  EXPECT_EQ(sum_of(one.at_peak->causes),
            now.source().run.cases[0].memory->peak_allocated_bytes -
                base.source().run.cases[0].memory->peak_allocated_bytes);
  EXPECT_THAT(decide(found).findings.at(0).sentence,
              HasSubstr("in optimizer step (in BASE in backward): temporary +9,216 bytes: by "
                        "aten::sqrt, 1 tensor more"));
}

// What was asked for may be highest at another moment: then that is said, so that the sum holds.
TEST(GateCause, WhatIsLeftOverIsSaid) {
  const FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(true));
  auto source = now.source();
  auto& memory = *source.run.cases[0].memory;
  memory.peak_requested_bytes += 7;
  compare::Policy policy;
  policy.allocated.bytes = 512;
  const auto decision = decide(compare::compare(base.source(), source, policy));
  EXPECT_THAT(
      decision.findings.at(0).sentence,
      HasSubstr("peak requested +8 bytes (4,000 -> 4,008 bytes), in backward: kept +1 byte: "
                "encoder.layers.0, by aten::empty, 1 tensor more; +7 bytes asked for at "
                "another moment than the most allocated"));
}

TEST(GateCause, AFigureThatIsNotThePeakIsNamedWithItsBytes) {
  auto before = fake_case("a/x/cpu/fp32/b1", 1 << 20), after = before;
  before.memory->phases["build"] = {1000, 1000};
  after.memory->phases["build"] = {1001, 1512};
  const auto found =
      compare::compare(plain_source("base", {before}), plain_source("new", {after}), {});
  EXPECT_EQ(found.cases.at(0).memory, Direction::kWorse);
  EXPECT_THAT(compare::to_text(found, 120), HasSubstr("0.001 GiB, build allocated +1 byte"));
  EXPECT_THAT(decide(found).findings.at(0).sentence,
              HasSubstr("memory is worse: build allocated +1 byte (1,000 -> 1,001 bytes)"));
}

TEST(GateCause, APolicyMayHoldThePeakAlone) {
  auto before = fake_case("a/x/cpu/fp32/b1", 1000), after = before;
  before.memory->phases["build"] = {10, 10};
  after.memory->phases["build"] = {20, 20};
  const auto base = plain_source("base", {before}), now = plain_source("new", {after});
  compare::Policy policy;
  EXPECT_EQ(decide(compare::compare(base, now, policy)).exit_code(), 4);
  policy.phases_fail = false;
  const auto found = compare::compare(base, now, policy);
  EXPECT_EQ(decide(found).exit_code(), 0);
  EXPECT_THAT(compare::to_text(found, 120),
              HasSubstr("worse build allocated +10 bytes (10 -> 20 bytes); the policy holds the "
                        "peak alone"));
  after.memory->peak_allocated_bytes = 1001;
  EXPECT_EQ(decide(compare::compare(base, plain_source("new", {after}), policy)).exit_code(), 4);
  after.memory->peak_allocated_bytes = 1000;
  after.memory->spaces["pinned"] = {1, 1, {}};
  EXPECT_EQ(decide(compare::compare(base, plain_source("new", {after}), policy)).exit_code(), 4)
      << "the peaks of other spaces are held";
}

TEST(GateCause, UnderOtherConditionsADifferenceIsNoRegressionAndDoesNotPass) {
  const auto base = plain_source("base", {fake_case("a/x/cpu/fp32/b1", 1000)});
  for (const std::int64_t bytes : {999, 1001}) {
    auto now = plain_source("new", {fake_case("a/x/cpu/fp32/b1", bytes)});
    now.run.settings["steps"] = 1;
    const auto found = compare::compare(base, now, {});
    EXPECT_EQ(found.incomparable, "steps 3 → 1");
    const auto decision = decide(found);
    EXPECT_EQ(decision.exit_code(), 2) << bytes;
    ASSERT_EQ(decision.findings.size(), 1U);
    EXPECT_THAT(decision.findings[0].sentence,
                HasSubstr("not comparable (steps 3 → 1): memory is "));
    EXPECT_THAT(to_text(decision, 100), HasSubstr("Changed settings: steps: 3 -> 1\n"));
  }
  auto now = plain_source("new", {fake_case("a/x/cpu/fp32/b1", 1000)});
  now.run.settings["steps"] = 1;
  EXPECT_EQ(decide(compare::compare(base, now, {})).exit_code(), 0) << "nothing differs";
  EXPECT_THAT(compare::to_text(compare::compare(base, now, {}), 200),
              HasSubstr("The runs are not comparable (steps 3 → 1)"));
}

// What one run does not say is not known to differ: a regression stays one.
TEST(GateCause, UnknownConditionsExcuseNothing) {
  auto base = plain_source("base", {fake_case("a/x/cpu/fp32/b1", 1000)}),
       now = plain_source("new", {fake_case("a/x/cpu/fp32/b1", 1001)});
  now.run.environment["libtorch"] = "2.12.0";
  EXPECT_EQ(decide(compare::compare(base, now, {})).exit_code(), 4);
  base.run.environment["libtorch"] = "2.11.0";
  const auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.incomparable, "LibTorch 2.11.0 → 2.12.0");
  EXPECT_EQ(decide(found).exit_code(), 2);
  now.run.cases.push_back(fake_case("b/x/cpu/fp32/b1", 5));
  now.run.cases.back().status = records::Status::kCrashed;
  const auto decision = decide(compare::compare(base, now, {}));
  EXPECT_EQ(decision.findings.back().outcome, Outcome::kFailedCase) << "what fails, fails";
  EXPECT_EQ(decision.exit_code(), 2);
}

}  // namespace
}  // namespace peakbench::compare
