// What a gate makes of a comparison that checked little, or nothing.
#include "reports/compare/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/fake_runs.h"

namespace peakbench::compare {
namespace {

using compare::CaseState;
using peakbench::testing::fake_case;
using peakbench::testing::plain_source;
using ::testing::HasSubstr;

records::CaseResult ended(records::CaseResult result, records::Status status) {
  result.status = status;
  result.reason = "so it is";
  result.memory.reset();
  return result;
}

TEST(Gate, NothingComparedDoesNotPass) {
  const auto fails = ended(fake_case("fails/x/cpu/fp32/b1", 1), records::Status::kOutOfMemory);
  const auto fresh = fake_case("fresh/x/cpu/fp32/b1", 1);
  const auto base = plain_source("base", {fails}), now = plain_source("new", {fails, fresh});
  const auto found = compare::compare(base, now, {});
  const auto decision = decide(found);
  EXPECT_EQ(decision.exit_code(), 2);
  ASSERT_EQ(decision.findings.size(), 1U);
  EXPECT_EQ(decision.findings[0].case_id, "");
  EXPECT_EQ(decision.findings[0].sentence,
            "no case's memory was compared (1 still failing, 1 new): nothing was checked. Compare "
            "with a run in which a case of NEW ended ok, or pass --allow-nothing where that is "
            "expected");
  EXPECT_THAT(to_text(decision, 100), HasSubstr("Gate: unusable (memory: nothing compared"));
  EXPECT_EQ(decide(found, true).exit_code(), 0) << "it was said to be expected";
}

TEST(Gate, ACaseThatStillFailsPassesBesideOneThatWasCompared) {
  const auto fails = ended(fake_case("fails/x/cpu/fp32/b1", 1), records::Status::kOutOfMemory);
  const auto same = fake_case("same/x/cpu/fp32/b1", 1);
  const auto decision = decide(compare::compare(plain_source("base", {fails, same}),
                                                plain_source("new", {fails, same}), {}));
  EXPECT_EQ(decision.exit_code(), 0);
  EXPECT_EQ(decision.summary, "memory: 1 the same; cases: 1 still failing");
  EXPECT_EQ(decision.cases[0].skipped, "still out of memory: so it is");
}

TEST(Gate, APolicyThatLeavesEverythingOutDoesNotPass) {
  const auto ran = fake_case("a/x/cpu/fp32/b1", 1);
  const auto found =
      compare::compare(plain_source("base", {ran}),
                       plain_source("new", {ended(ran, records::Status::kCrashed)}), {});
  EXPECT_EQ(decide(found).exit_code(), 5) << "what failed says more than `unusable`";
  auto lenient = found;
  lenient.policy.failed_fails = false;
  EXPECT_EQ(decide(lenient).exit_code(), 2);
}

TEST(Gate, WhatHasNoFiguresIsNotTheSame) {
  auto ran = fake_case("a/x/cpu/fp32/b1", 1);
  ran.memory.reset();
  const auto found = compare::compare(plain_source("base", {ran}), plain_source("new", {ran}), {});
  EXPECT_EQ(found.cases.at(0).state, CaseState::kRefused);
  EXPECT_EQ(found.cases[0].reason, "BASE has no memory figures of it");
  EXPECT_EQ(decide(found).exit_code(), 2);
}

TEST(Gate, NoEffectIsAFailedCase) {
  const auto ran = fake_case("a/x/cpu/fp32/b1", 1);
  const auto found =
      compare::compare(plain_source("base", {ran}),
                       plain_source("new", {ended(ran, records::Status::kNoEffect)}), {});
  EXPECT_EQ(found.cases.at(0).state, CaseState::kFailed);
  const auto decision = decide(found);
  EXPECT_EQ(decision.exit_code(), 5);
  EXPECT_EQ(decision.findings.at(0).sentence, "failed: no effect: so it is");
}

// The machine's doing is no regression and no failure of the case's; it does not pass all the same.
TEST(Gate, WhatTheMachineFailedIsNotMeasured) {
  const auto ran = fake_case("a/x/cpu/fp32/b1", 1), same = fake_case("same/x/cpu/fp32/b1", 1);
  const auto failed = ended(ran, records::Status::kHostFailure);
  const auto decision_of = [&](const records::CaseResult& base, const records::CaseResult& now) {
    return decide(
        compare::compare(plain_source("base", {base, same}), plain_source("new", {now, same}), {}));
  };
  auto decision = decision_of(ran, failed);
  EXPECT_EQ(decision.exit_code(), 5);
  EXPECT_EQ(decision.findings.at(0).sentence,
            "not measured: the machine failed it in NEW (so it is); the same `peakbench run` with "
            "--resume runs it again");
  EXPECT_EQ(decision.summary, "memory: 1 the same; cases: 1 missing");
  EXPECT_EQ(decision_of(failed, failed).exit_code(), 5);
  decision = decision_of(failed, ran);
  EXPECT_EQ(decision.exit_code(), 0);
  EXPECT_EQ(decision.summary, "memory: 1 the same; cases: 1 new");
  EXPECT_EQ(decision.cases[0].skipped,
            "new: the machine failed it in BASE (so it is); the same `peakbench run` with --resume "
            "runs it again");
  EXPECT_EQ(decision_of(failed, ended(ran, records::Status::kCrashed)).exit_code(), 5);
}

}  // namespace
}  // namespace peakbench::compare
