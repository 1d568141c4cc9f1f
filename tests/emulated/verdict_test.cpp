// The verdict, from records alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "verdict/judge.h"

namespace peakbench::emulator {
namespace {

class VerdictTest : public testing::Test {
 protected:
  VerdictTest() {
    ledger_->finished = 1;
    ledger_->device_count = 1;
    ledger_->elastic_attempt = -1;
    ledger_->devices[0].allocations = 1;
    ledger_->computing = Computing::on;
  }

  LedgerReadBack& add_read(ReadKind kind, std::uint64_t known, std::uint64_t substituted,
                           const char* place = "train.py:12") {
    LedgerReads& reads =
        substituted ? ledger_->reads[static_cast<std::size_t>(kind)] : ledger_->known_reads;
    LedgerReadBack& row = reads.rows[reads.count++];
    row.kind = kind;
    std::snprintf(row.operation, sizeof row.operation, "aten::item");
    std::snprintf(row.place, sizeof row.place, "%s", place);
    row.calls = known + substituted;
    row.substitute_calls = substituted;
    return row;
  }

  LedgerFact& add_fact(Fact kind, const char* function = "", const char* what = "",
                       const char* place = "") {
    LedgerFacts& facts = ledger_->facts[static_cast<std::size_t>(kind)];
    LedgerFact& row = facts.rows[facts.count++];
    row.calls = 1;
    std::snprintf(row.function, sizeof row.function, "%s", function);
    std::snprintf(row.what, sizeof row.what, "%s", what);
    std::snprintf(row.place, sizeof row.place, "%s", place);
    return row;
  }

  LedgerWorkspace& add_workspace(std::uint64_t calls, std::uint64_t allocated_bytes,
                                 Workspace kind = Workspace::cudnn_engine,
                                 const char* operation = "aten::convolution") {
    LedgerWorkspace& row = ledger_->workspaces.rows[ledger_->workspaces.count++];
    row.calls = calls;
    row.largest_allocated_bytes = allocated_bytes;
    row.kind = kind;
    std::snprintf(row.operation, sizeof row.operation, "%s", operation);
    return row;
  }

  Verdict verdict(const std::string& assume = "", int status = 0) const {
    return judge({ledger_.get()}, {status, assume});
  }

  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>();
};

TEST_F(VerdictTest, KnownReadsAreExact) {
  add_read(ReadKind::integer, 3, 0);
  EXPECT_EQ(verdict().kind, VerdictKind::exact);
  EXPECT_EQ(verdict_text(verdict()), "Verdict: exact\n");
}

TEST_F(VerdictTest, ARefusedWriteIsUnreliable) {
  add_fact(Fact::copy_past_end, "gather", "a copy");
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  EXPECT_EQ(verdict().reasons[0], "a copy past the end of its block was refused (gather)");
}

TEST_F(VerdictTest, ARankAloneIsACondition) {
  add_fact(Fact::nccl_alone).ranks = 8;
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  ASSERT_EQ(verdict().conditions.size(), 1u);
  EXPECT_EQ(verdict().conditions[0], "NCCL: rank 0 of 8 alone, the others taken to be like it");
}

TEST_F(VerdictTest, UnknownNumbersAreACondition) {
  add_read(ReadKind::floating, 0, 2);
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::exact_if);
  ASSERT_EQ(said.conditions.size(), 1u);
  EXPECT_EQ(said.conditions[0],
            "aten::item at train.py:12 read floating values that are not known (2 times)");
  EXPECT_EQ(verdict_text(said),
            "Verdict: exact if the program's path does not depend on these:\n"
            "  aten::item at train.py:12 read floating values that are not known (2 times)\n"
            "  to do: --second-guess 2 runs the program again with other values and compares its "
            "peaks\n");
}

TEST_F(VerdictTest, ABoundKeepsItsConditions) {
  add_read(ReadKind::floating, 0, 2);
  const Verdict said = verdict("", 1 << 8);
  EXPECT_EQ(said.kind, VerdictKind::lower_bound);
  EXPECT_NE(verdict_text(said).find("Provided that the program's path does not depend on these:"),
            std::string::npos);
}

TEST_F(VerdictTest, ChecksForFiniteValuesAndCheckpointsAreConditions) {
  add_read(ReadKind::finite, 0, 2);
  add_read(ReadKind::storage, 0, 1);
  add_read(ReadKind::seed, 0, 1);
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::exact_if);
  ASSERT_EQ(said.conditions.size(), 2u);
  EXPECT_EQ(said.conditions[0],
            "aten::item at train.py:12 read whether values are finite, which they are taken to be "
            "(2 times)");
}

TEST_F(VerdictTest, IntegersThatAreOnlyLoggedAreACondition) {
  add_read(ReadKind::logged, 0, 3);
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::exact_if);
  ASSERT_EQ(said.conditions.size(), 1u);
  EXPECT_EQ(said.conditions[0],
            "aten::item at train.py:12 read integer values that are not known and, as its source "
            "shows, only logged (3 times)");
}

// A branch that was not taken may have been one: only what the source shows to be printed is left
// out, and only where every call came after the last allocation.
TEST_F(VerdictTest, NumbersThatArePrintedAfterTheLastAllocationChangeNothing) {
  ledger_->counts_known = 1;
  ledger_->last_allocation = 1000;
  for (const auto kind : {ReadKind::floating, ReadKind::logged}) {
    for (LedgerReads& reads : ledger_->reads) reads.count = 0;
    LedgerReadBack& row = add_read(kind, 0, 2);
    row.first = 1001;
    EXPECT_EQ(verdict().kind, VerdictKind::exact_if) << "it may decide something";
    row.only_printed = 1;
    EXPECT_EQ(verdict().kind, VerdictKind::exact);
    row.first = 999;
    EXPECT_EQ(verdict().kind, VerdictKind::exact_if) << "something was allocated since";
    row.first = 1001;
    ledger_->counts_known = 0;
    EXPECT_EQ(verdict().kind, VerdictKind::exact_if) << "nobody saw PyTorch's allocator";
    ledger_->counts_known = 1;
  }
  LedgerReadBack& truth = add_read(ReadKind::boolean, 0, 1);
  truth.first = 1001;
  truth.only_printed = 1;
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
}

TEST_F(VerdictTest, UnknownTruthsIntegersAndBytesAreUnreliable) {
  for (const auto kind : {ReadKind::boolean, ReadKind::integer, ReadKind::bytes}) {
    for (LedgerReads& reads : ledger_->reads) reads.count = 0;
    add_read(kind, 5, 1);
    EXPECT_EQ(verdict().kind, VerdictKind::unreliable) << word_of(kind);
    EXPECT_EQ(verdict("nonzero=all").kind, VerdictKind::unreliable) << word_of(kind);
  }
}

TEST_F(VerdictTest, UnknownSizesAreBoundedByAssumptions) {
  add_read(ReadKind::size, 0, 1);
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  EXPECT_NE(verdict_text(verdict()).find("--assume nonzero=none"), std::string::npos);
  EXPECT_EQ(verdict("nonzero=all").kind, VerdictKind::upper_bound);
  EXPECT_EQ(verdict("nonzero=none").kind, VerdictKind::lower_bound);
}

TEST_F(VerdictTest, VendorWorkspacesAreMissing) {
  add_workspace(1, 0).uncounted_calls = 1;
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
  add_read(ReadKind::size, 0, 1);
  EXPECT_EQ(verdict("nonzero=all").kind, VerdictKind::unreliable)
      << "neither above nor below what a card would take";
}

TEST_F(VerdictTest, AMissingWorkspaceHasARange) {
  ledger_->devices[0].peak_allocated_bytes = 3ull << 30;
  add_workspace(5, 5ull << 29, Workspace::cudnn_engine, "aten::convolution_backward");
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::lower_bound);
  EXPECT_EQ(said.workspace_room_bytes, 1 << 29);
  EXPECT_EQ(said.reasons.at(0),
            "scratch memory whose size NVIDIA's library chooses is counted as 0: one cudnn engine "
            "workspace raises the allocated peak only if it exceeds 0.500 GiB "
            "(aten::convolution_backward, 5 calls)");
  // A case's peak is of its steps; what its build needed is not it.
  VerdictRequest of_case;
  of_case.of_case = true;
  of_case.peak_allocated_bytes = 5ull << 29;
  EXPECT_EQ(judge({ledger_.get()}, of_case).workspace_room_bytes, 0);
}

TEST_F(VerdictTest, TheWorkspaceWithTheLeastRoomIsNamedFirst) {
  LedgerWorkspace& other = add_workspace(1, 1ull << 30, Workspace::answered, "aten::_linalg_svd");
  std::snprintf(other.function, sizeof other.function, "cusolverDnSgesvdj_bufferSize");
  add_workspace(1, 5ull << 29);
  ledger_->devices[0].peak_allocated_bytes = 3ull << 30;
  const Verdict said = verdict();
  ASSERT_EQ(said.reasons.size(), 2U);
  EXPECT_EQ(said.workspace_room_bytes, 1 << 29);
  EXPECT_THAT(
      said.reasons[0],
      testing::HasSubstr("workspace raises the allocated peak only if it exceeds 0.500 GiB"));
  EXPECT_THAT(said.reasons[1], testing::HasSubstr("exceeds 2.000 GiB (aten::_linalg_svd"));
}

TEST_F(VerdictTest, AWorkspaceThatNobodyCountedHasNoRange) {
  ledger_->devices[0].peak_allocated_bytes = 3ull << 30;
  LedgerWorkspace& row = add_workspace(5, 1ull << 30);
  row.uncounted_calls = 1;
  EXPECT_EQ(verdict().workspace_room_bytes, std::nullopt) << "one call of five is not known";
  row.uncounted_calls = 0;
  EXPECT_NE(verdict().workspace_room_bytes, std::nullopt);
  ledger_->finished = 0;
  EXPECT_EQ(verdict().workspace_room_bytes, std::nullopt) << "there is another reason";
}

TEST_F(VerdictTest, ACasesWorkerThatIsAtItsEndHasEndedWell) {
  ledger_->finished = 0;
  ledger_->computing = Computing::not_asked;
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
  VerdictRequest of_case;
  of_case.of_case = true;
  const Verdict said = judge({ledger_.get()}, of_case);
  EXPECT_EQ(said.kind, VerdictKind::exact);
  EXPECT_TRUE(said.notes.empty());
}

TEST_F(VerdictTest, WorkspacesThatWereAnsweredWithNoneAreMissing) {
  LedgerWorkspace& row = add_workspace(1, 0, Workspace::answered, "");
  row.uncounted_calls = 1;
  std::snprintf(row.function, sizeof row.function, "cusolverDnXpotrf_bufferSize");
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::lower_bound);
  EXPECT_EQ(said.reasons.at(0),
            "cusolverDnXpotrf_bufferSize (1 call): scratch memory whose size NVIDIA's library "
            "chooses, counted as 0");
  EXPECT_EQ(said.notes.size(), 1u);
  EXPECT_TRUE(said.advice.empty());
}

TEST_F(VerdictTest, WhatIsNoWorkspaceChangesNothing) {
  add_fact(Fact::reserve_space);
  EXPECT_EQ(verdict().kind, VerdictKind::exact);
}

TEST_F(VerdictTest, AKernelWithoutCodeForTheCardIsACondition) {
  add_fact(Fact::unknown_kernel);
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  ASSERT_EQ(verdict().conditions.size(), 1u);
  EXPECT_NE(verdict().conditions[0].find("no machine code for this card"), std::string::npos);
}

TEST_F(VerdictTest, TheGrowthOfMemoryPoolsIsACondition) {
  add_fact(Fact::pool_growth);
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  ASSERT_EQ(verdict().conditions.size(), 1u);
  EXPECT_NE(verdict().conditions[0].find("in steps that NVIDIA does not document"),
            std::string::npos);
}

TEST_F(VerdictTest, UnifiedMemoryIsMissing) {
  add_fact(Fact::unified_memory);
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
  EXPECT_EQ(verdict().reasons.at(0), "unified memory: none of it is charged to the card");
}

TEST_F(VerdictTest, WhoAsksHowMuchMemoryIsFreeMayActOnIt) {
  LedgerPlace& row = ledger_->free_memory_reads.rows[ledger_->free_memory_reads.count++];
  std::snprintf(row.function, sizeof row.function, "cudaMemGetInfo");
  std::snprintf(row.place, sizeof row.place, "train.py:12");
  row.calls = 3;
  const Verdict said = verdict();
  ASSERT_EQ(said.conditions.size(), 1u);
  EXPECT_EQ(said.conditions[0],
            "cudaMemGetInfo at train.py:12 read how much memory is free (3 times): a card has less "
            "by its CUDA context, which is in no figure");
  ASSERT_EQ(said.advice.size(), 1u);
  EXPECT_NE(said.advice[0].find("context=SIZE"), std::string::npos);
  const Verdict beside = judge({ledger_.get()}, {0, "", Streams::at_once, 512ull << 20});
  ASSERT_EQ(beside.conditions.size(), 1u);
  EXPECT_NE(beside.conditions[0].find("for which 0.500 GiB are set aside"), std::string::npos);
  EXPECT_TRUE(beside.advice.empty());
}

TEST_F(VerdictTest, OutOfMemoryThatTheProgramSurvived) {
  LedgerPlace& row = ledger_->out_of_memory.rows[ledger_->out_of_memory.count++];
  std::snprintf(row.function, sizeof row.function, "aten::empty");
  row.calls = 2;
  row.largest_bytes = 30ull << 30;
  row.kernel_launches = 12;
  ledger_->devices[0].refused_allocations = 2;
  EXPECT_EQ(
      verdict().conditions.at(0),
      "memory of cuda:0 was refused 2 times, and the program continued (aten::empty asked for "
      "30.000 GiB after 12 kernel launches)");
  ledger_->counts_known = 1;
  EXPECT_NE(verdict().conditions.at(0).find("refused 2 times, and PyTorch gave back what it kept"),
            std::string::npos);
  ledger_->devices[0].out_of_memory_calls = 1;
  EXPECT_NE(verdict().conditions.at(0).find("cuda:0 ran out of memory 1 time, and the program"),
            std::string::npos);
  EXPECT_TRUE(verdict("", 1 << 8).conditions.empty()) << "of what ended the program";
}

TEST_F(VerdictTest, AnAttemptThatElasticTrainingEnded) {
  const auto next = std::make_unique<Ledger>(*ledger_);
  ledger_->finished = 0;
  ledger_->elastic_attempt = 0;
  add_fact(Fact::nccl_failure, "", "rank 1 has ended");
  next->elastic_attempt = 1;
  const Verdict said = judge({ledger_.get(), next.get()}, {0, ""});
  EXPECT_EQ(said.kind, VerdictKind::exact);
  ASSERT_EQ(said.notes.size(), 1u);
  EXPECT_EQ(said.notes[0], "attempt 0 of elastic training failed and was ended; another followed");
  next->parent_pid = 7;
  EXPECT_EQ(judge({ledger_.get(), next.get()}, {0, ""}).kind, VerdictKind::unreliable)
      << "of another program";
  next->parent_pid = 0;
  next->finished = 0;
  EXPECT_EQ(judge({ledger_.get(), next.get()}, {0, ""}).kind, VerdictKind::lower_bound)
      << "the last one has to end by itself";
}

TEST_F(VerdictTest, WhatDidNotEndWellMayHaveNeededMore) {
  EXPECT_EQ(verdict("", 1 << 8).kind, VerdictKind::lower_bound);
  ledger_->finished = 0;
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
}

TEST_F(VerdictTest, RefusedCallsAndNoCard) {
  add_fact(Fact::refused_call, "cudaIpcGetMemHandle");
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  EXPECT_EQ(verdict().reasons[0],
            "cudaIpcGetMemHandle is not emulated and was refused: a real card may have gone on");
  EXPECT_EQ(judge({}, {0, ""}).kind, VerdictKind::unreliable);
}

TEST_F(VerdictTest, WhatFoundNoRowWeighsAsARowDoes) {
  const auto reads = [&](ReadKind kind) -> LedgerReads& {
    return ledger_->reads[static_cast<std::size_t>(kind)];
  };
  reads(ReadKind::floating).beyond.kind = ReadKind::floating;
  reads(ReadKind::floating).beyond.calls = reads(ReadKind::floating).beyond.zero_calls = 9;
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  EXPECT_EQ(verdict().conditions.at(0),
            "more source lines than the record can hold read floating values that are not known "
            "(9 times)");
  ledger_->facts[static_cast<std::size_t>(Fact::open_choice)].beyond.calls = 3;
  EXPECT_EQ(verdict().conditions.at(1), "another operator: what it takes is not specified");
  ledger_->facts[static_cast<std::size_t>(Fact::refused_call)].beyond.calls = 3;
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  ledger_->facts[static_cast<std::size_t>(Fact::refused_call)].beyond.calls = 0;
  ledger_->workspaces.beyond.calls = ledger_->workspaces.beyond.uncounted_calls = 1;
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
  EXPECT_EQ(verdict().workspace_room_bytes, std::nullopt);
}

TEST_F(VerdictTest, NoWordOfTheProgramDecides) {
  // Each of these words was looked for in texts that hold the program's own names.
  for (const char* place :
       {"train.py:5", "workspace.py:5", "alone, the others.py:5", "is not specified",
        "unified memory.py:1", "NCCL: a.py:1", "Elapsed.py:1", "x: answered with 0 bytes"}) {
    for (LedgerFacts& facts : ledger_->facts) facts.count = 0;
    for (LedgerReads& of_kind : ledger_->reads) of_kind.count = 0;
    add_fact(Fact::open_choice, "aten::sort", "the order of equal keys", place);
    add_fact(Fact::elapsed_time, "", "", place);
    add_read(ReadKind::floating, 0, 1, place);
    EXPECT_EQ(verdict().kind, VerdictKind::exact_if) << place;
    EXPECT_EQ(verdict().conditions.size(), 2u) << place;
  }
}

TEST_F(VerdictTest, OtherValuesThatChangedNothingAreACondition) {
  add_read(ReadKind::boolean, 0, 1);
  add_read(ReadKind::finite, 0, 1);
  VerdictRequest request;
  request.second_guess = records::SecondGuess{3, {5, 5, 5}, "", true};
  Verdict said = judge({ledger_.get()}, request);
  EXPECT_EQ(said.kind, VerdictKind::exact_if);
  ASSERT_EQ(said.conditions.size(), 2u) << "what is taken to be finite is so with each value";
  EXPECT_EQ(said.conditions[1],
            "what it reads is not known, and its peaks are the same with other values (3 runs)");
  add_fact(Fact::refused_call, "cudaIpcGetMemHandle");
  EXPECT_EQ(judge({ledger_.get()}, request).kind, VerdictKind::unreliable) << "no value mends that";
  ledger_->facts[static_cast<std::size_t>(Fact::refused_call)].count = 0;
  request.second_guess = records::SecondGuess{3, {5, 7, 5}, "", false};
  said = judge({ledger_.get()}, request);
  EXPECT_EQ(said.kind, VerdictKind::unreliable);
  EXPECT_EQ(said.reasons.back(),
            "its peaks depend on values that are not known: 5 B to 7 B in 3 runs");
  request.second_guess = records::SecondGuess{2, {5, 5}, "it ended with exit code 1", false};
  said = judge({ledger_.get()}, request);
  EXPECT_EQ(said.kind, VerdictKind::unreliable) << "as without it";
  EXPECT_EQ(said.notes.at(0), "with other values it is not known: it ended with exit code 1");
}

TEST_F(VerdictTest, HowManyFurtherRunsTakeBothSides) {
  const auto needed = [&] { return guesses_needed({ledger_.get()}); };
  add_read(ReadKind::floating, 0, 5);
  add_read(ReadKind::boolean, 0, 5);
  add_read(ReadKind::logged, 0, 5);
  add_read(ReadKind::integer, 0, 1);
  EXPECT_EQ(needed(), 2);
  add_read(ReadKind::integer, 0, 1, "train.py:9");
  EXPECT_EQ(needed(), 3) << "two integers have an order";
  add_read(ReadKind::size, 0, 1);
  EXPECT_EQ(needed(), 4);
}

TEST_F(VerdictTest, WhyValuesWereNotComputed) {
  ledger_->computing = Computing::unavailable;
  std::snprintf(ledger_->computing_note, sizeof ledger_->computing_note, "PyTorch 9.9");
  add_read(ReadKind::integer, 0, 1);
  const auto json = to_json(verdict());
  EXPECT_EQ(json.at("notes").at(0), "values were not computed: PyTorch 9.9");
  EXPECT_EQ(json.at("advice").size(), 3u);
}

class ConvolutionsTest : public VerdictTest {
 protected:
  ConvolutionsTest() {
    ledger_->counts_known = 1;
    ledger_->devices[0].peak_allocated_bytes = kPeak;
  }

  // Asked for with `bytes` of a range, `allocated` with them.
  void add_convolution(Workspace kind, std::uint64_t allocated, std::uint64_t excess,
                       std::uint64_t lack) {
    LedgerWorkspace& row = add_workspace(4, allocated, kind);
    row.highest_bytes = allocated + lack;
    row.largest_excess_bytes = excess;
    row.largest_most_bytes = lack;
  }

  static constexpr std::int64_t kMiB = 1 << 20, kPeak = 1000 * kMiB, kMoved = kPeak / 100;
};

TEST_F(ConvolutionsTest, FarFromThePeakMoveBlocksAlone) {
  add_convolution(Workspace::cudnn_estimated, 500 * kMiB, 30 * kMiB, 100 * kMiB);
  EXPECT_EQ(verdict().kind, VerdictKind::estimate);
  EXPECT_EQ(verdict().estimate, (records::EstimateError{kMoved, kMoved, 100 * kMiB + kMoved}));
}

TEST_F(ConvolutionsTest, MayRaiseOrLowerThePeakThatTheyAreNear) {
  add_convolution(Workspace::cudnn_estimated, 990 * kMiB, 30 * kMiB, 100 * kMiB);
  EXPECT_EQ(verdict().estimate,
            (records::EstimateError{30 * kMiB + kMoved, 90 * kMiB + kMoved, 100 * kMiB + kMoved}));
  EXPECT_THAT(verdict().reasons.front(), testing::HasSubstr("is estimated (aten::convolution, 4 "
                                                            "calls)"));
  EXPECT_THAT(verdict().reasons.front(), testing::HasSubstr("-40.0 MiB/+100.0 MiB"));
}

TEST_F(ConvolutionsTest, AreTheWorstOfSeveral) {
  add_convolution(Workspace::cudnn_measured, 1000 * kMiB, 0, 0);
  EXPECT_EQ(verdict().estimate, (records::EstimateError{kMoved, kMoved, kMoved}));
  EXPECT_THAT(verdict().reasons.front(), testing::HasSubstr("was measured"));
  EXPECT_THAT(verdict().advice, testing::Not(testing::Contains(testing::HasSubstr("doctor"))));
  add_convolution(Workspace::cudnn_estimated, 1000 * kMiB, 20 * kMiB, 10 * kMiB);
  EXPECT_EQ(verdict().estimate,
            (records::EstimateError{20 * kMiB + kMoved, 10 * kMiB + kMoved, 10 * kMiB + kMoved}));
  EXPECT_THAT(verdict().advice, testing::Contains(testing::HasSubstr("doctor --workspaces")));
}

TEST_F(ConvolutionsTest, LeaveABoundWhereTheyDoNotReachThePeak) {
  add_convolution(Workspace::cudnn_estimated, 500 * kMiB, 0, 0);
  add_workspace(1, 10, Workspace::cufft_plan);
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
  EXPECT_THAT(verdict().reasons.front(), testing::HasSubstr("cufft"));
  EXPECT_NE(verdict().estimate, std::nullopt) << "what fits has room for it";
}

TEST_F(ConvolutionsTest, LeaveNoBoundThatTheyMayPass) {
  add_convolution(Workspace::cudnn_estimated, 1000 * kMiB, 30 * kMiB, 0);
  add_workspace(1, 10, Workspace::cufft_plan);
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable) << "less by the estimate, more by the plan";
  ledger_->workspaces.count = 0;
  add_convolution(Workspace::cudnn_estimated, 1000 * kMiB, 0, 30 * kMiB);
  ledger_->shared_page_allocations = 1;
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable) << "more by the estimate, less by the pages";
}

TEST_F(ConvolutionsTest, AreMissingWhereNobodyKnowsWhatWasAllocated) {
  add_convolution(Workspace::cudnn_estimated, 500 * kMiB, 0, 0);
  ledger_->workspaces.rows[0].uncounted_calls = 1;
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
}

TEST_F(ConvolutionsTest, ThatWereMeasuredWithoutAWorkspaceAreExact) {
  add_fact(Fact::measured_workspace, "", "NVIDIA H200, today");
  EXPECT_EQ(verdict().kind, VerdictKind::exact);
  EXPECT_THAT(verdict().notes, testing::Contains(testing::HasSubstr("NVIDIA H200, today")));
}

TEST_F(ConvolutionsTest, OfAnotherCardAreACondition) {
  add_fact(Fact::workspace_of_another_card, "", "NVIDIA H200, today");
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
}

}  // namespace
}  // namespace peakbench::emulator
