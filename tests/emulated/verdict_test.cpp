// The verdict, from records alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/kernels.h"
#include "core/pools.h"
#include "core/read_kinds.h"
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

  LedgerReadBack& add_read(const char* kind, std::uint64_t known, std::uint64_t substituted) {
    LedgerReadBack& row = ledger_->read_backs[ledger_->read_back_count++];
    std::snprintf(row.kind, sizeof row.kind, "%s", kind);
    std::snprintf(row.operation, sizeof row.operation, "aten::item");
    std::snprintf(row.place, sizeof row.place, "train.py:12");
    row.calls = known + substituted;
    row.substitute_calls = substituted;
    return row;
  }

  static void add_name(LedgerNames& names, const char* name) {
    std::snprintf(names.rows[names.count].name, sizeof names.rows[0].name, "%s", name);
    names.rows[names.count++].calls = 1;
  }

  Verdict verdict(const std::string& assume = "", int status = 0) const {
    return judge({ledger_.get()}, {status, assume});
  }

  std::unique_ptr<Ledger> ledger_ = std::make_unique<Ledger>();
};

TEST_F(VerdictTest, KnownReadsAreExact) {
  add_read(kReadInteger, 3, 0);
  EXPECT_EQ(verdict().kind, VerdictKind::exact);
  EXPECT_EQ(verdict_text(verdict()), "Verdict: exact\n");
}

TEST_F(VerdictTest, ARefusedWriteIsUnreliable) {
  add_name(ledger_->faults, "a copy past the end of its block was refused (gather)");
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  EXPECT_EQ(verdict().reasons[0], "a copy past the end of its block was refused (gather)");
}

TEST_F(VerdictTest, ARankAloneIsACondition) {
  add_name(ledger_->unmodelled, "NCCL: rank 0 of 8 alone, the others taken to be like it");
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  ASSERT_EQ(verdict().conditions.size(), 1u);
  EXPECT_EQ(verdict().conditions[0], "NCCL: rank 0 of 8 alone, the others taken to be like it");
}

TEST_F(VerdictTest, UnknownNumbersAreACondition) {
  add_read(kReadFloating, 0, 2);
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::exact_if);
  ASSERT_EQ(said.conditions.size(), 1u);
  EXPECT_EQ(said.conditions[0],
            "aten::item at train.py:12 read floating values that are not known (2 times)");
  EXPECT_EQ(verdict_text(said),
            "Verdict: exact if the program's path does not depend on these:\n"
            "  aten::item at train.py:12 read floating values that are not known (2 times)\n");
}

TEST_F(VerdictTest, ABoundKeepsItsConditions) {
  add_read(kReadFloating, 0, 2);
  const Verdict said = verdict("", 1 << 8);
  EXPECT_EQ(said.kind, VerdictKind::lower_bound);
  EXPECT_NE(verdict_text(said).find("Provided that the program's path does not depend on these:"),
            std::string::npos);
}

TEST_F(VerdictTest, ChecksForFiniteValuesAndCheckpointsAreConditions) {
  add_read(kReadFinite, 0, 2);
  add_read(kReadStorage, 0, 1);
  add_read(kReadSeed, 0, 1);
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::exact_if);
  ASSERT_EQ(said.conditions.size(), 2u);
  EXPECT_EQ(said.conditions[0],
            "aten::item at train.py:12 read whether values are finite, which they are taken to be "
            "(2 times)");
}

TEST_F(VerdictTest, UnknownTruthsIntegersAndBytesAreUnreliable) {
  for (const char* kind : {kReadBool, kReadInteger, ""}) {
    ledger_->read_back_count = 0;
    add_read(kind, 5, 1);
    EXPECT_EQ(verdict().kind, VerdictKind::unreliable) << kind;
    EXPECT_EQ(verdict("nonzero=all").kind, VerdictKind::unreliable) << kind;
  }
}

TEST_F(VerdictTest, UnknownSizesAreBoundedByAssumptions) {
  add_read(kReadSize, 0, 1);
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  EXPECT_NE(verdict_text(verdict()).find("--assume nonzero=none"), std::string::npos);
  EXPECT_EQ(verdict("nonzero=all").kind, VerdictKind::upper_bound);
  EXPECT_EQ(verdict("nonzero=none").kind, VerdictKind::lower_bound);
}

TEST_F(VerdictTest, VendorWorkspacesAreMissing) {
  add_name(ledger_->unmodelled, "cudnn engine workspace");
  EXPECT_EQ(verdict().kind, VerdictKind::lower_bound);
  add_read(kReadSize, 0, 1);
  EXPECT_EQ(verdict("nonzero=all").kind, VerdictKind::unreliable)
      << "neither above nor below what a card would take";
}

TEST_F(VerdictTest, AMissingWorkspaceHasARange) {
  add_name(ledger_->unmodelled, "cudnn engine workspace");
  ledger_->unmodelled.rows[0].calls = 5;
  ledger_->devices[0].peak_allocated_bytes = 3ull << 30;
  ledger_->workspace_count = 2;
  ledger_->workspaces[0] = {3, 1ull << 30, 0, "cudnn engine workspace", "aten::convolution"};
  ledger_->workspaces[1] = {2, 5ull << 29, 0, "cudnn engine workspace",
                            "aten::convolution_backward"};
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::lower_bound);
  EXPECT_EQ(said.workspace_room_bytes, 1 << 29);
  EXPECT_EQ(said.reasons.at(0),
            "exact unless one cudnn engine workspace exceeds 0.500 GiB "
            "(aten::convolution_backward, 5 calls): memory of the vendor's choosing, counted as "
            "none");
  // A case's peak is of its steps; what its build needed is not it.
  VerdictRequest of_case;
  of_case.of_case = true;
  of_case.peak_allocated_bytes = 5ull << 29;
  EXPECT_EQ(judge({ledger_.get()}, of_case).workspace_room_bytes, 0);
}

TEST_F(VerdictTest, TheWorkspaceWithTheLeastRoomIsNamedFirst) {
  add_name(ledger_->unmodelled, "cusolverDnSgesvdj_bufferSize: answered with 0 bytes");
  add_name(ledger_->unmodelled, "cudnn engine workspace");
  ledger_->devices[0].peak_allocated_bytes = 3ull << 30;
  ledger_->workspace_count = 2;
  ledger_->workspaces[0] = {1, 1ull << 30, 0, "cusolverDnSgesvdj_bufferSize: answered with 0 bytes",
                            "aten::_linalg_svd"};
  ledger_->workspaces[1] = {1, 5ull << 29, 0, "cudnn engine workspace", "aten::convolution"};
  const Verdict said = verdict();
  ASSERT_EQ(said.reasons.size(), 2U);
  EXPECT_EQ(said.workspace_room_bytes, 1 << 29);
  EXPECT_THAT(said.reasons[0], testing::HasSubstr("cudnn engine workspace exceeds 0.500 GiB"));
  EXPECT_THAT(said.reasons[1], testing::HasSubstr("exceeds 2.000 GiB (aten::_linalg_svd"));
}

TEST_F(VerdictTest, AWorkspaceThatNobodyCountedHasNoRange) {
  add_name(ledger_->unmodelled, "cudnn engine workspace");
  ledger_->unmodelled.rows[0].calls = 5;
  ledger_->devices[0].peak_allocated_bytes = 3ull << 30;
  ledger_->workspace_count = 1;
  ledger_->workspaces[0] = {4, 1ull << 30, 0, "cudnn engine workspace", "aten::convolution"};
  EXPECT_EQ(verdict().workspace_room_bytes, std::nullopt) << "one call of five is not known";
  ledger_->workspaces[0].calls = 5;
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
  add_name(ledger_->unmodelled, "cusolverDnXpotrf_bufferSize: answered with 0 bytes");
  const Verdict said = verdict();
  EXPECT_EQ(said.kind, VerdictKind::lower_bound);
  EXPECT_EQ(
      said.reasons.at(0),
      "cusolverDnXpotrf_bufferSize (1 call): memory of the vendor's choosing, counted as none");
  EXPECT_EQ(said.notes.size(), 1u);
  EXPECT_TRUE(said.advice.empty());
}

TEST_F(VerdictTest, WhatIsNoWorkspaceChangesNothing) {
  add_name(ledger_->unmodelled, "cudnn RNN reserve space: a model of what backward needs");
  EXPECT_EQ(verdict().kind, VerdictKind::exact);
}

TEST_F(VerdictTest, AKernelWithoutCodeForTheCardIsACondition) {
  add_name(ledger_->unmodelled, kUnknownKernel);
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  ASSERT_EQ(verdict().conditions.size(), 1u);
  EXPECT_NE(verdict().conditions[0].find("no machine code for this card"), std::string::npos);
}

TEST_F(VerdictTest, TheGrowthOfMemoryPoolsIsACondition) {
  add_name(ledger_->unmodelled, kPoolGrowth);
  EXPECT_EQ(verdict().kind, VerdictKind::exact_if);
  ASSERT_EQ(verdict().conditions.size(), 1u);
  EXPECT_NE(verdict().conditions[0].find("in steps that NVIDIA does not document"),
            std::string::npos);
}

TEST_F(VerdictTest, UnifiedMemoryIsMissing) {
  add_name(ledger_->unmodelled, "unified memory: none of it is charged to the card");
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
  EXPECT_EQ(verdict().conditions.at(0),
            "memory of cuda:0 was refused 2 times, and the program went on (aten::empty asked for "
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
  add_name(ledger_->faults, "NCCL: rank 1 has ended");
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

TEST_F(VerdictTest, RefusedCallsLostReadsAndNoCard) {
  add_name(ledger_->refused, "cudaIpcGetMemHandle");
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  ledger_->refused.count = 0;
  ledger_->read_backs_dropped = 1;
  EXPECT_EQ(verdict().kind, VerdictKind::unreliable);
  EXPECT_EQ(judge({}, {0, ""}).kind, VerdictKind::unreliable);
}

TEST_F(VerdictTest, WhyValuesWereNotComputed) {
  ledger_->computing = Computing::unavailable;
  std::snprintf(ledger_->computing_note, sizeof ledger_->computing_note, "PyTorch 9.9");
  add_read(kReadInteger, 0, 1);
  const auto json = to_json(verdict());
  EXPECT_EQ(json.at("notes").at(0), "values were not computed: PyTorch 9.9");
  EXPECT_EQ(json.at("advice").size(), 2u);
}

}  // namespace
}  // namespace peakbench::emulator
