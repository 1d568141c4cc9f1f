// Comparison on tiny runs and traces with known answers.
#include "reports/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/errors.h"
#include "records/case.h"
#include "records/run_files.h"
#include "reports/compare/gate.h"
#include "support/fake_runs.h"

namespace peakbench {
namespace {

using analysis::Source;
using compare::CaseState;
using compare::Direction;
using ::testing::Contains;
using testing::fake_case;
using testing::FakeRun;
using ::testing::HasSubstr;

constexpr const char* kId = "tiny/baseline/emulated:h100-80gb/fp32/b1";

compare::Comparison compared(const FakeRun& base, const FakeRun& now,
                             const compare::Policy& policy = {}) {
  return compare::compare(base.source(), now.source(), policy);
}

template <typename Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "(no error)";
}

const compare::Measure& measure(const compare::CaseComparison& one, const std::string& where,
                                const std::string& figure) {
  for (const auto& found : one.measures)
    if (found.where == where && found.figure == figure && found.space.empty()) return found;
  throw std::out_of_range(where + " " + figure);
}

TEST(Compare, SameCodeTwiceIsTheSame) {
  const FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(false));
  const auto found = compared(base, now);
  ASSERT_EQ(found.cases.size(), 1U);
  EXPECT_EQ(found.cases[0].state, CaseState::kCompared);
  EXPECT_EQ(found.cases[0].memory, Direction::kSame);
  EXPECT_TRUE(found.cases[0].growth.empty());
  EXPECT_EQ(compare::decide(found).exit_code(), 0);
}

// The one extra byte: +1 asked for, +512 allocated, named.
TEST(Compare, OneByteKeptAliveIsNamed) {
  const FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(true));
  const auto found = compared(base, now);
  const auto& one = found.cases.at(0);
  EXPECT_EQ(one.memory, Direction::kWorse);
  for (const char* where : {"peak", "forward", "backward", "optimizer_step"}) {
    const auto& requested = measure(one, where, "requested");
    const auto& allocated = measure(one, where, "allocated");
    EXPECT_EQ(requested.now - requested.base, 1) << where;
    EXPECT_EQ(allocated.now - allocated.base, 512) << where;
    EXPECT_EQ(allocated.direction, Direction::kWorse) << where;
  }
  EXPECT_EQ(measure(one, "build", "allocated").direction, Direction::kSame);
  ASSERT_EQ(one.growth.size(), 3U);
  for (const auto& growth : one.growth) {
    ASSERT_EQ(growth.parts.size(), 1U) << growth.phase;
    EXPECT_EQ(growth.block_bytes, 512);
    EXPECT_EQ(growth.requested_bytes, 1);
    EXPECT_EQ(growth.parts[0].category, "kept");
    EXPECT_EQ(growth.parts[0].allocated_in, "forward");
    EXPECT_EQ(growth.parts[0].module, "encoder.layers.0");
    EXPECT_EQ(growth.parts[0].op, "aten::empty");
    ASSERT_EQ(growth.appeared.size(), 1U);
    EXPECT_EQ(growth.appeared[0].count, 1);
    EXPECT_EQ(growth.appeared[0].requested_bytes, 1);
  }
  const auto decision = compare::decide(found);
  EXPECT_EQ(decision.exit_code(), 4);
  ASSERT_EQ(decision.findings.size(), 1U);
  EXPECT_THAT(decision.findings[0].details,
              ::testing::Contains("forward: +1 byte asked for, +512 bytes allocated: kept, "
                                  "allocated in forward, in encoder.layers.0, by aten::empty"));
  // The other way round the byte is saved.
  const auto back = compared(now, base);
  EXPECT_EQ(back.cases.at(0).memory, Direction::kBetter);
  EXPECT_EQ(compare::decide(back).exit_code(), 0);
}

TEST(Compare, PartsFromAHistoryNameItToo) {
  const FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(true));
  auto old = base.source();
  old.parts = {{kId, analysis::parts_of(testing::tiny_trace(false))}};
  old.folder.clear();
  old.label = "history:main@latest";
  const auto found = compare::compare(old, now.source(), {});
  ASSERT_EQ(found.cases.at(0).growth.size(), 3U);
  EXPECT_EQ(found.cases[0].growth[0].parts.at(0).module, "encoder.layers.0");
  EXPECT_TRUE(found.cases[0].growth[0].appeared.empty());
}

TEST(Compare, MissingBrokenAndForeignTracesAreSaid) {
  const FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(true));
  const auto path = std::filesystem::path(now.source().folder) /
                    records::headline_rank(now.source().run.cases[0]).trace;
  std::filesystem::copy_file(std::filesystem::path(base.source().folder) /
                                 records::headline_rank(base.source().run.cases[0]).trace,
                             path, std::filesystem::copy_options::overwrite_existing);
  auto one = compared(base, now).cases.at(0);
  EXPECT_THAT(one.growth_note, HasSubstr("it is of another run"));
  EXPECT_TRUE(one.growth.empty());
  std::ofstream(path, std::ios::trunc) << "SQLite format 3, no more";
  one = compared(base, now).cases.at(0);
  EXPECT_THAT(one.growth_note, HasSubstr(path.string()));
  std::filesystem::remove(path);
  one = compared(base, now).cases.at(0);
  EXPECT_EQ(one.growth_note, now.source().label + " has no trace of this case");
  EXPECT_EQ(one.memory, Direction::kWorse) << "what is in run.json is judged all the same";
}

TEST(Compare, ToleranceIsBytesOrAPart) {
  const FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(true));
  compare::Policy policy;
  records::set_gate(policy, "requested", "1", "test");
  records::set_gate(policy, "allocated", "511", "test");
  EXPECT_EQ(compared(base, now, policy).cases.at(0).memory, Direction::kWorse);
  records::set_gate(policy, "allocated", "512", "test");
  EXPECT_EQ(compared(base, now, policy).cases.at(0).memory, Direction::kSame);
  policy.allocated = {0, 0.5};
  EXPECT_EQ(compared(base, now, policy).cases.at(0).memory, Direction::kSame);
}

TEST(Compare, ReservedHasATolerance) {
  auto base = testing::plain_source("base", {fake_case(kId, 1000)});
  auto now = testing::plain_source("new", {fake_case(kId, 1000)});
  base.run.cases[0].memory->peak_reserved_bytes = 1000;
  now.run.cases[0].memory->peak_reserved_bytes = 1020;
  EXPECT_EQ(compare::compare(base, now, {}).cases.at(0).memory, Direction::kSame);
  now.run.cases[0].memory->peak_reserved_bytes = 1021;
  EXPECT_EQ(compare::compare(base, now, {}).cases.at(0).memory, Direction::kWorse);
  base.run.cases[0].memory->peak_reserved_bytes.reset();
  EXPECT_EQ(compare::compare(base, now, {}).cases.at(0).memory, Direction::kSame);
}

TEST(Compare, OtherSpacesCountToo) {
  auto base = testing::plain_source("base", {fake_case(kId, 1000)});
  auto now = base;
  now.label = "new";
  base.run.cases[0].memory->spaces["pinned"] = {100, 100, {}};
  now.run.cases[0].memory->spaces["pinned"] = {101, 101, {}};
  const auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).memory, Direction::kWorse);
  EXPECT_EQ(found.cases[0].measures.back().space, "pinned");
}

// The figures of a case are its largest rank's.
TEST(Compare, EveryRankCounts) {
  auto base = testing::plain_source("base", {fake_case(kId, 1000)});
  auto& result = base.run.cases[0];
  auto smaller = *result.memory;
  smaller.peak_requested_bytes = smaller.peak_allocated_bytes = 100;
  result.ranks = {{0, smaller, ""}, {1, result.memory, ""}};
  auto now = base;
  now.label = "new";
  EXPECT_EQ(compare::compare(base, now, {}).cases.at(0).memory, Direction::kSame);
  now.run.cases[0].ranks[0].memory->peak_allocated_bytes = 612;
  const auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).memory, Direction::kWorse);
  const auto is_worse = [](const auto& one) { return one.direction == Direction::kWorse; };
  const auto worse = std::ranges::find_if(found.cases[0].measures, is_worse);
  ASSERT_NE(worse, found.cases[0].measures.end());
  EXPECT_EQ(worse->space, "rank 0");
  EXPECT_EQ(worse->now - worse->base, 512);
  now.run.cases[0].ranks.push_back({2, smaller, ""});  // a process more
  now.run.cases[0].ranks[0].memory = smaller;
  EXPECT_EQ(compare::compare(base, now, {}).cases.at(0).memory, Direction::kWorse);
}

// On the second of two cards as many bytes as on the first: which of them is the case's own is
// told, not guessed.
TEST(Compare, TheOwnSpaceIsNotComparedTwice) {
  auto base = testing::plain_source("base", {fake_case(kId, 1000)});
  auto& memory = *base.run.cases[0].memory;
  memory.space = "cuda:1";
  const records::SpaceMemory same{memory.peak_allocated_bytes, memory.peak_requested_bytes, {}};
  memory.spaces = {{"cuda:0", same}, {"cuda:1", same}};
  auto now = base;
  now.label = "new";
  std::set<std::string> spaces;
  const auto found = compare::compare(base, now, {});
  for (const auto& measure : found.cases.at(0).measures) spaces.insert(measure.space);
  EXPECT_EQ(spaces, (std::set<std::string>{"", "cuda:0"}));
}

TEST(Compare, WhatBecomesOfCases) {
  auto lost = fake_case("lost/baseline/cpu/fp32/b1", 1),
       fails = fake_case("fails/x/cpu/fp32/b1", 1), heals = fake_case("heals/x/cpu/fp32/b1", 1),
       bad = fake_case("bad/x/cpu/fp32/b1", 1), same = fake_case("same/x/cpu/fp32/b1", 1),
       fresh = fake_case("fresh/x/cpu/fp32/b1", 1), pending = fake_case("pending/x/cpu/fp32/b1", 1);
  const auto broken = [](records::CaseResult result, records::Status status) {
    result.status = status;
    result.reason = "so it is";
    result.memory.reset();
    return result;
  };
  auto base =
      testing::plain_source("base", {lost, fails, broken(heals, records::Status::kCrashed),
                                     broken(bad, records::Status::kOutOfMemory), same, pending});
  auto now =
      testing::plain_source("new", {broken(fails, records::Status::kTimeout), heals,
                                    broken(bad, records::Status::kOutOfMemory), same, fresh});
  now.run.status = "interrupted";
  now.run.pending = {pending.spec.id};
  const auto found = compare::compare(base, now, {});
  std::map<std::string, CaseState> states;
  for (const auto& one : found.cases) states[one.id.substr(0, one.id.find('/'))] = one.state;
  EXPECT_EQ(states, (std::map<std::string, CaseState>{{"lost", CaseState::kMissing},
                                                      {"pending", CaseState::kMissing},
                                                      {"fails", CaseState::kFailed},
                                                      {"heals", CaseState::kRecovered},
                                                      {"bad", CaseState::kStillFailed},
                                                      {"same", CaseState::kCompared},
                                                      {"fresh", CaseState::kNew}}));
  EXPECT_EQ(found.cases.back().reason, "NEW has not run it: the run is interrupted");
  const auto decision = compare::decide(found);
  EXPECT_EQ(decision.exit_code(), 5);
  EXPECT_EQ(decision.findings.size(), 3U);
  compare::Policy lenient;
  lenient.failed_fails = lenient.missing_fails = false;
  EXPECT_EQ(compare::decide(compare::compare(base, now, lenient)).exit_code(), 0);
}

TEST(Compare, CasesThatThePlanAddedAreLeftOut) {
  const auto same = fake_case("same/x/cpu/fp32/b1", 1);
  auto added = fake_case("added/x/cpu/fp32/b1", 1);
  added.added_for = "ablation";
  const auto with = testing::plain_source("with", {same, added}),
             without = testing::plain_source("without", {same});
  EXPECT_EQ(compare::compare(with, without, {}).cases.size(), 1U);
  EXPECT_EQ(compare::compare(without, with, {}).cases.size(), 1U);
  EXPECT_EQ(compare::decide(compare::compare(with, without, {})).exit_code(), 0);
}

TEST(Compare, ARunWithoutACommitHasNone) {
  const auto base = testing::plain_source("base", {fake_case(kId, 1)});
  auto now = testing::plain_source("new", {fake_case(kId, 1)});
  now.run.environment.erase("commit");
  EXPECT_EQ(compare::compare(base, now, {}).now.commit, "");
  now.run.environment["commit"] = 7;
  EXPECT_EQ(compare::compare(base, now, {}).now.commit, "");
  EXPECT_EQ(compare::compare(base, now, {}).base.commit, "0a1b2c3");
}

TEST(Compare, ANarrowTextHasEachCaseOnALineOfItsOwn) {
  const auto found = compare::compare(testing::plain_source("base", {fake_case(kId, 1)}),
                                      testing::plain_source("new", {fake_case(kId, 1)}), {});
  const auto narrow = compare::to_text(found, 44), wide = compare::to_text(found, 140);
  EXPECT_THAT(narrow, HasSubstr(std::string("\n  ") + kId + "\n"));
  EXPECT_THAT(wide, ::testing::Not(HasSubstr(std::string("\n  ") + kId + "\n")));
}

TEST(Compare, ANewCaseThatFailsIsAFailure) {
  auto failing = fake_case("fails/x/cpu/fp32/b1", 1);
  failing.status = records::Status::kCrashed;
  const auto same = fake_case("same/x/cpu/fp32/b1", 1);
  const auto found = compare::compare(testing::plain_source("base", {same}),
                                      testing::plain_source("new", {same, failing}), {});
  EXPECT_EQ(compare::decide(found).exit_code(), 5);
}

TEST(Compare, RefusesTheSameRunAndNoCommonCase) {
  const auto one = testing::plain_source("here", {fake_case("a/x/cpu/fp32/b1", 1)});
  EXPECT_THAT(error_of([&] { compare::compare(one, one, {}); }),
              HasSubstr("BASE and NEW are the same run (here)"));
  const auto other = testing::plain_source("there", {fake_case("b/x/cpu/fp32/b1", 1)});
  EXPECT_THAT(error_of([&] { compare::compare(one, other, {}); }),
              HasSubstr("here and there have no case in common. Cases are matched by id. BASE has: "
                        "a/x/cpu/fp32/b1. NEW has: b/x/cpu/fp32/b1."));
  const FakeRun traced(testing::tiny_trace(false));
  auto twice = traced.source();
  twice.folder += "/../" + std::filesystem::path(twice.folder).filename().string();
  twice.label = "another name";
  EXPECT_THAT(error_of([&] { compare::compare(traced.source(), twice, {}); }),
              HasSubstr("the same run"));
}

TEST(Compare, TakesOneProgramOfEachRunWhateverItIsCalled) {
  const auto program = [](const char* id) {
    auto one = fake_case(id, 1);
    one.spec.kind = records::CaseKind::kProgram;
    return one;
  };
  const auto before = program("program/old.py/cpu"), after = program("program/new.py/cpu");
  const auto found =
      compare::compare(testing::plain_source("base", {before}),
                       testing::plain_source("new", {after}), {}, compare::Pairing::of_programs);
  ASSERT_EQ(found.cases.size(), 1U);
  EXPECT_EQ(found.cases[0].state, CaseState::kCompared);
  EXPECT_EQ(found.cases[0].id, after.spec.id);
  EXPECT_THAT(found.notes, Contains(HasSubstr("BASE ran program/old.py/cpu, NEW ran "
                                              "program/new.py/cpu")));
  EXPECT_THAT(error_of([&] {
                compare::compare(testing::plain_source("base", {before, program("program/x/cpu")}),
                                 testing::plain_source("new", {after}), {},
                                 compare::Pairing::of_programs);
              }),
              HasSubstr("no case in common"));
  EXPECT_THAT(error_of([&] {
                compare::compare(testing::plain_source("base", {before}),
                                 testing::plain_source("new", {after}), {});
              }),
              HasSubstr("no case in common"));
}

TEST(Compare, NeverMixesCards) {
  auto base = testing::plain_source("base", {fake_case("a/x/cuda:0/fp32/b1", 1000)});
  auto now = testing::plain_source("new", {fake_case("a/x/cuda:0/fp32/b1", 1001)});
  base.run.environment["card"] = "NVIDIA A100";
  now.run.environment["card"] = "NVIDIA H100";
  auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).state, CaseState::kRefused);
  EXPECT_TRUE(found.cases[0].measures.empty());
  EXPECT_EQ(found.cases[0].reason, "another card: NVIDIA A100 in BASE, NVIDIA H100 in NEW");
  const auto decision = compare::decide(found);
  EXPECT_EQ(decision.exit_code(), 2);
  now.run.environment["card"] = "NVIDIA A100";
  EXPECT_EQ(compare::compare(base, now, {}).cases.at(0).memory, Direction::kWorse);
  now.run.cases[0].emulation = records::Emulation{"a100-80gb", {}, {}, {}};
  found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).reason, "NEW has it from an emulated card, BASE from a real one");
  base.run.cases[0].emulation = records::Emulation{"h100-80gb", {}, {}, {}};
  found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).reason, "another emulated card: h100-80gb in BASE, a100-80gb in NEW");
}

// A worker that ended without a word says nothing of its card; the case's device does.
TEST(Compare, AnEmulatedCardIsKnownByTheCasesDeviceToo) {
  const auto base =
      testing::plain_source("base", {fake_case("a/x/emulated:t4-16gb/fp32/b1", 1000)});
  auto now = testing::plain_source("new", {fake_case("a/x/emulated:t4-16gb/fp32/b1", 1001)});
  now.run.cases[0].emulation.reset();
  const auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).state, CaseState::kCompared);
  EXPECT_TRUE(found.cases[0].emulated);
  EXPECT_EQ(found.cases[0].memory, Direction::kWorse);
}

// Kinds of a later Peakbench are compared as they stand.
TEST(Compare, DevicesThatNobodyKnowsAreCompared) {
  const auto base = testing::plain_source("base", {fake_case("a/x/tpu:4/fp32/b1", 1000)});
  const auto now = testing::plain_source("new", {fake_case("a/x/tpu:4/fp32/b1", 1001)});
  const auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).memory, Direction::kWorse);
  EXPECT_FALSE(found.cases[0].emulated);
}

// A run on two cards: each case says its own, and a run of schema 1.0 says one for all.
TEST(Compare, ACardIsTheCasesOwn) {
  const auto on = [](const std::string& id, const char* card) {
    auto result = fake_case(id, 1000);
    result.environment = {{"card", card}, {"emulated", false}};
    return result;
  };
  const auto base = testing::plain_source(
      "base", {on("a/x/cuda:0/fp32/b1", "NVIDIA A100"), on("a/x/cuda:1/fp32/b1", "NVIDIA L4")});
  auto now = testing::plain_source(
      "new", {on("a/x/cuda:0/fp32/b1", "NVIDIA A100"), on("a/x/cuda:1/fp32/b1", "NVIDIA H100")});
  auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).state, CaseState::kCompared);
  EXPECT_EQ(found.cases.at(1).reason, "another card: NVIDIA L4 in BASE, NVIDIA H100 in NEW");
  ASSERT_EQ(found.changes.size(), 1U);
  EXPECT_EQ(found.changes[0].name + ":" + found.changes[0].base + ":" + found.changes[0].now,
            "card:NVIDIA L4:NVIDIA H100");
  EXPECT_EQ(found.changes[0].cases, 1U);
  auto older = testing::plain_source("older", {fake_case("a/x/cuda:0/fp32/b1", 1000)});
  older.run.environment.update({{"card", "NVIDIA A100"}, {"emulated", false}});
  found = compare::compare(older, now, {});
  EXPECT_EQ(found.cases.at(0).state, CaseState::kCompared);
  EXPECT_TRUE(found.changes.empty()) << found.changes[0].name;
}

// Of two cards that one process sees, the case's own is the one that is named.
TEST(Compare, TheOwnSpaceIsNotCountedTwice) {
  auto result = fake_case("a/x/cuda:1/fp32/b1", 1000);
  result.memory->space = "cuda:1";
  result.memory->spaces = {{"cuda:0", {1000, 1000, {}}}, {"cuda:1", {2000, 2000, {}}}};
  const auto source = testing::plain_source("base", {result});
  auto now = source;
  now.label = "new";
  const auto comparison = compare::compare(source, now, {});
  std::set<std::string> spaces;
  for (const auto& measure : comparison.cases.at(0).measures) spaces.insert(measure.space);
  EXPECT_EQ(spaces, (std::set<std::string>{"", "cuda:0"}));
}

TEST(Compare, OfSeveralBoundsTheTightestIsNamed) {
  FakeRun base(testing::tiny_trace(false)), now(testing::tiny_trace(false));
  const auto bound = [](std::int64_t room, const std::string& reason) {
    records::Verdict verdict;
    verdict.kind = records::VerdictKind::lower_bound;
    verdict.workspace_room_bytes = room;
    verdict.reasons = {reason};
    return verdict;
  };
  for (FakeRun* one : {&base, &now}) {
    auto& cases = one->source().run.cases;
    cases.push_back(cases.front());
    cases.back().spec.id = "tiny/lora/emulated:h100-80gb/fp32/b1";
    cases.front().emulation.emplace().verdict = bound(5 << 20, "the reason of five");
    cases.back().emulation.emplace().verdict = bound(1 << 20, "the reason of one");
  }
  EXPECT_THAT(
      compared(base, now).notes,
      ::testing::Contains(HasSubstr("tiny/lora/emulated:h100-80gb/fp32/b1 and 1 more: NEW's "
                                    "figures are a lower bound (the reason of one)")));
}

TEST(Compare, SaysWhatElseDiffers) {
  auto base = testing::plain_source("base", {fake_case(kId, 1)});
  auto now = testing::plain_source("new", {fake_case(kId, 1)});
  base.run.environment = {{"libtorch", "2.11.0"}, {"commit", "aaa"}, {"host", "here"}};
  now.run.environment = {{"libtorch", "2.12.0"}, {"driver", 13}, {"host", "there"}};
  now.run.settings["steps"] = 5;
  base.run.schema_version = "1.0.0";
  now.run.schema_version = "1.1.0";
  now.run.cases[0].settings = {{"cudnn", false}};
  base.run.cases[0].settings = {{"cudnn", true}};
  std::vector<std::string> said;
  for (const auto& change : compare::compare(base, now, {}).changes)
    said.push_back(change.name + ":" + change.base + ":" + change.now + ":" +
                   std::to_string(change.cases));
  EXPECT_THAT(said, ::testing::ElementsAre("driver::13:0", "libtorch:2.11.0:2.12.0:0",
                                           "steps:3:5:0", "cudnn:true:false:1",
                                           "schema_version:1.0.0:1.1.0:0", "commit:aaa::0"))
      << "settings first";
}

TEST(Compare, NotesAClockThatGoesBackwards) {
  auto base = testing::plain_source("base", {fake_case(kId, 1)});
  auto now = testing::plain_source("new", {fake_case(kId, 1)});
  base.run.created = "2026-02-01T00:00:00Z";
  now.run.created = "2026-01-01T00:00:00Z";
  EXPECT_THAT(compare::compare(base, now, {}).notes,
              ::testing::Contains(HasSubstr("NEW is older than BASE")));
}

TEST(Compare, OneProcessSaysNothingOfSpeed) {
  auto base = testing::plain_source("base", {testing::timed_case({100, 100, 100})});
  auto now = testing::plain_source("new", {testing::timed_case({200, 200, 200})});
  const auto speed = compare::compare(base, now, {}).cases.at(0).speed;
  ASSERT_TRUE(speed);
  EXPECT_EQ(speed->difference.direction, Direction::kUnknown);
  EXPECT_EQ(speed->difference.more, 4);
  EXPECT_NEAR(speed->difference.ratio, 2, 1e-12);
  EXPECT_EQ(compare::decide(compare::compare(base, now, {})).exit_code(), 0);
}

// A round is a process, whatever the settings say: an interrupted run has fewer.
TEST(Compare, RoundsAreProcesses) {
  const auto in_rounds = [](std::int64_t first) {
    std::vector<std::int64_t> steps;
    auto result = testing::timed_case({1, 1, 1});
    for (std::int64_t round = 0; round < 6; ++round) {
      const auto step = first + 1000 * round;
      result.throughput->rounds.push_back({round, 0, {step, step, 9 * step}, {}});
      steps.insert(steps.end(), {step, step, 9 * step});
    }
    result.throughput->step_times_ns = steps;
    return result;
  };
  auto base = testing::plain_source("base", {in_rounds(1'000'000)});
  auto now = testing::plain_source("new", {in_rounds(1'100'000)});
  base.run.settings["repetitions"] = now.run.settings["repetitions"] = 8;
  const auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).speed->difference.samples, 6U);
  EXPECT_EQ(found.cases[0].speed->difference.direction, Direction::kWorse);
}

TEST(Compare, RepetitionsAreJudged) {
  std::vector<std::int64_t> fast, slow;
  for (int process = 0; process < 6; ++process)
    for (int step = 0; step < 3; ++step) {
      fast.push_back(1'000'000 + 1000 * process);
      slow.push_back(1'100'000 + 1000 * process);
    }
  auto base = testing::plain_source("base", {testing::timed_case(fast)});
  auto now = testing::plain_source("new", {testing::timed_case(slow)});
  base.run.settings["repetitions"] = now.run.settings["repetitions"] = 6;
  auto found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).speed->difference.direction, Direction::kWorse);
  EXPECT_EQ(found.cases[0].speed->difference.samples, 6U);
  EXPECT_EQ(compare::decide(found).exit_code(), 4);
  EXPECT_THAT(found.notes, ::testing::Contains(HasSubstr("peakbench ab")));
  compare::Policy off;
  off.throughput.reset();
  EXPECT_EQ(compare::decide(compare::compare(base, now, off)).exit_code(), 0);
  now.run.environment["cpu"] = "another";
  found = compare::compare(base, now, {});
  EXPECT_EQ(found.cases.at(0).speed->difference.direction, Direction::kUnknown);
  EXPECT_THAT(found.cases[0].speed->difference.reason, HasSubstr("another machine"));
}

}  // namespace
}  // namespace peakbench
