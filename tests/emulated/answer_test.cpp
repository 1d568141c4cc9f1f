// The first line of what `peakbench emulate` prints, from records alone.
#include "emulator/host/answer.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "program_fixture.h"

namespace peakbench::emulator {
namespace {

using AnswerTest = ProgramFixture;

void add_read(Ledger& ledger, ReadKind kind) {
  LedgerReads& reads = ledger.reads[static_cast<std::size_t>(kind)];
  LedgerReadBack& row = reads.rows[reads.count++];
  row.kind = kind;
  std::snprintf(row.operation, sizeof row.operation, "aten::item");
  row.calls = row.substitute_calls = 1;
}

TEST_F(AnswerTest, OneProcessFits) {
  add_process(118 * kMiB);
  const Answer said = answer();
  EXPECT_EQ(
      said.sentence,
      "Fits h100-80gb: peak 0.115 GiB of 80.000 GiB, context (0.500 GiB) not included; exact.");
  EXPECT_EQ(said.fits, true);
  EXPECT_EQ(said.tone, Tone::good);
  EXPECT_EQ(to_json(said), (nlohmann::json{{"fits", true},
                                           {"sentence", said.sentence},
                                           {"card", 0},
                                           {"rank", nullptr},
                                           {"pid", 4711},
                                           {"peak_bytes", 118 * kMiB},
                                           {"total_bytes", 80 * kGiB},
                                           {"context_bytes", 512 * kMiB},
                                           {"context_source", "measured"},
                                           {"context_included", false},
                                           {"out_of_memory", nullptr}}));
}

TEST_F(AnswerTest, SmallPeaksAreShownInSmallUnits) {
  add_process(2 * kMiB);
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb: peak 2.0 MiB of 80.000 GiB, ")) << sentence();
}

TEST_F(AnswerTest, OfRanksTheFullestCard) {
  for (int rank = 0; rank < 4; ++rank) add_process((rank == 2 ? 3 : 1) * kGiB, rank, rank);
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb: peak 3.000 GiB of 80.000 GiB (rank 2), "))
      << sentence();
  EXPECT_EQ(answer().card, 2u);
  EXPECT_EQ(to_json(answer()).at("rank"), 2);
}

TEST_F(AnswerTest, OfEqualRanksTheFirst) {
  for (int rank = 3; rank >= 0; --rank) add_process(kGiB, rank, rank);
  EXPECT_NE(sentence().find("(rank 0)"), std::string::npos) << sentence();
}

TEST_F(AnswerTest, ProcessesWhoseRanksNobodySaid) {
  add_process(kGiB, 0);
  add_process(2 * kGiB, 1);
  EXPECT_NE(sentence().find("of 80.000 GiB (process 4712), "), std::string::npos) << sentence();
}

TEST_F(AnswerTest, SeveralDevicesOfOneProcess) {
  Ledger& ledger = add_process(kGiB);
  ledger.device_count = 2;
  ledger.devices[1] = ledger.devices[0];
  ledger.devices[1].card = 1;
  ledger.devices[1].peak_used_bytes = 5 * kGiB;
  EXPECT_NE(sentence().find("peak 5.000 GiB of 80.000 GiB (cuda:1), "), std::string::npos)
      << sentence();
}

TEST_F(AnswerTest, ProcessesThatShareACard) {
  add_process(20 * kGiB);
  add_process(10 * kGiB);
  EXPECT_NE(sentence().find("peak 30.000 GiB of 80.000 GiB (card 0, 2 processes together), "
                            "contexts (2 of 0.500 GiB) not included; exact."),
            std::string::npos)
      << sentence();
}

TEST_F(AnswerTest, ProcessesOneAfterAnotherShareNothing) {
  add_process(20 * kGiB);
  add_process(10 * kGiB);
  program_.card_peaks = {{20 * kGiB, 1}};
  EXPECT_NE(sentence().find("peak 20.000 GiB of 80.000 GiB (process 4711), context (0.500 GiB)"),
            std::string::npos)
      << sentence();
}

TEST_F(AnswerTest, TheContextThatWasSetAsideIsIncluded) {
  program_.card.facts.context_bytes = kGiB;
  add_process(20 * kGiB);
  EXPECT_EQ(sentence(),
            "Fits h100-80gb: peak 21.000 GiB of 80.000 GiB, context (1.000 GiB) included; exact.");
  EXPECT_EQ(to_json(answer()).at("context_bytes"), kGiB);
  EXPECT_EQ(to_json(answer()).at("context_included"), true);
}

TEST_F(AnswerTest, AContextWithoutRoomIsNoFit) {
  add_process(80 * kGiB - 512 * kMiB);
  EXPECT_EQ(answer().fits, true) << "it has just the room";
  program_.card_peaks[0].bytes += 2 * kMiB;
  const Answer said = answer();
  EXPECT_EQ(said.sentence,
            "May not fit h100-80gb with its CUDA context: peak 79.502 GiB of 80.000 GiB, context "
            "(0.500 GiB) not included; exact.");
  EXPECT_EQ(said.fits, std::nullopt);
  EXPECT_EQ(said.tone, Tone::doubtful);
}

TEST_F(AnswerTest, EveryProcessHasAContext) {
  add_process(40 * kGiB);
  add_process(39 * kGiB);
  EXPECT_EQ(answer().fits, true) << sentence();
  owned_[1]->devices[0].peak_used_bytes += 256 * kMiB;
  program_.card_peaks[0].bytes += 256 * kMiB;
  EXPECT_EQ(answer().fits, std::nullopt) << sentence();
}

TEST_F(AnswerTest, ContextZeroAsksForTheBrim) {
  program_.card.context_is_asked = true;
  add_process(80 * kGiB);
  EXPECT_EQ(sentence(),
            "Fits h100-80gb: peak 80.000 GiB of 80.000 GiB, no context set aside; exact.");
  EXPECT_EQ(to_json(answer()).at("context_source"), "option");
}

TEST_F(AnswerTest, AContextThatNobodyMeasured) {
  program_.card.context_memory.clear();
  add_process(kGiB);
  EXPECT_NE(sentence().find("context (up to 0.749 GiB) not included"), std::string::npos);
  EXPECT_EQ(answer().fits, true);
  EXPECT_EQ(to_json(answer()).at("context_bytes"), kLargestContext);
  EXPECT_EQ(to_json(answer()).at("context_source"), "largest_known");
  program_.card_peaks[0].bytes = 80 * kGiB - 512 * kMiB;
  EXPECT_EQ(answer().fits, std::nullopt) << "others of as much were measured";
}

TEST_F(AnswerTest, WhatDiedOfAnOutOfMemoryDoesNotFit) {
  Ledger& ledger = add_process(60 * kGiB);
  ledger.kernel_launches = 100;
  run_out(ledger, 30 * kGiB, 60 * kGiB);
  ledger.devices[0].last_needed_bytes = 90 * kGiB;
  program_.wait_status = kExitCode1;
  const Answer said = answer();
  EXPECT_EQ(said.sentence,
            "Does not fit h100-80gb: asked for 30.000 GiB (aten::empty at train.py:12) with 60.000 "
            "GiB in use of 80.000 GiB, context (0.500 GiB) not included; it needs 90.000 GiB at "
            "least.");
  EXPECT_EQ(said.fits, false);
  EXPECT_EQ(said.tone, Tone::bad);
  EXPECT_EQ(to_json(said).at("out_of_memory"), (nlohmann::json{{"swallowed", false},
                                                               {"calls", 1},
                                                               {"asked_bytes", 30 * kGiB},
                                                               {"in_use_bytes", 60 * kGiB},
                                                               {"needed_bytes", 90 * kGiB},
                                                               {"function", "aten::empty"},
                                                               {"place", "train.py:12"},
                                                               {"pid", 4711},
                                                               {"device", 0}}));
}

// What was free was of no use for the request: "needs" less than the card has would be a riddle.
TEST_F(AnswerTest, WhatNeedsLessThanTheCardHasIsNotSaidToNeedIt) {
  Ledger& ledger = add_process(79 * kGiB);
  ledger.kernel_launches = 100;
  run_out(ledger, 2 * kGiB, 79 * kGiB);
  ledger.devices[0].last_needed_bytes = 70 * kGiB;
  program_.wait_status = kExitCode1;
  EXPECT_EQ(sentence().find("needs"), std::string::npos) << sentence();
  EXPECT_EQ(to_json(answer()).at("out_of_memory").at("needed_bytes"), 70 * kGiB);
}

TEST_F(AnswerTest, ARankThatDiedOfIt) {
  add_process(70 * kGiB, 0, 0);
  run_out(add_process(60 * kGiB, 1, 1), 30 * kGiB, 60 * kGiB);
  program_.wait_status = kExitCode1;
  const Answer said = answer();
  EXPECT_NE(said.sentence.find("in use of 80.000 GiB (rank 1), "), std::string::npos)
      << said.sentence;
  EXPECT_EQ(said.card, 1u);
}

TEST_F(AnswerTest, AbortedForWantOfMemory) {
  run_out(add_process(60 * kGiB), 30 * kGiB, 60 * kGiB);
  program_.wait_status = kAborted;
  EXPECT_EQ(answer().fits, false);
  program_.wait_status = kKilled;
  EXPECT_EQ(answer().fits, std::nullopt) << "somebody else ended it";
}

TEST_F(AnswerTest, UnreliableFiguresShowNoMisfit) {
  Ledger& ledger = add_process(60 * kGiB);
  add_read(ledger, ReadKind::size);
  run_out(ledger, 300 * kGiB, 60 * kGiB);
  program_.wait_status = kExitCode1;
  const Answer said = answer();
  EXPECT_TRUE(
      said.sentence.starts_with("Ran out of memory, by unreliable figures, of h100-80gb: "
                                "asked for 300.000 GiB"))
      << said.sentence;
  EXPECT_TRUE(said.sentence.ends_with("; unreliable.")) << said.sentence;
  EXPECT_EQ(said.fits, std::nullopt);
}

TEST_F(AnswerTest, AnOutOfMemoryThatWasSwallowed) {
  Ledger& ledger = add_process(60 * kGiB);
  run_out(ledger, 30 * kGiB, 55 * kGiB);
  ledger.devices[0].out_of_memory_calls = 3;
  ledger.kernel_launches = 7;
  const Answer said = answer();
  EXPECT_EQ(
      said.sentence,
      "Ran out of memory of h100-80gb 3 times and continued: asked for 30.000 GiB (aten::empty "
      "at train.py:12) with 55.000 GiB in use; peak 60.000 GiB of 80.000 GiB, context (0.500 "
      "GiB) not included; exact if (1 condition below).");
  EXPECT_EQ(said.fits, std::nullopt);
  EXPECT_EQ(to_json(said).at("out_of_memory").at("swallowed"), true);
}

TEST_F(AnswerTest, WhatPyTorchGaveBackInTimeIsNoOutOfMemory) {
  Ledger& ledger = add_process(60 * kGiB);
  run_out(ledger, 30 * kGiB, 55 * kGiB);
  ledger.devices[0].out_of_memory_calls = 0;
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb: ")) << sentence();
  ledger.counts_known = 0;
  EXPECT_TRUE(sentence().starts_with("Ran out of memory of h100-80gb 2 times and continued: "))
      << "nobody knows who asked again: " << sentence();
}

TEST_F(AnswerTest, TheLimitThatAProgramSetsItself) {
  Ledger& ledger = add_process(6 * kGiB);
  ledger.devices[0].out_of_memory_calls = 1;
  ledger.devices[0].last_needed_bytes = 12 * kGiB;
  EXPECT_TRUE(
      sentence().starts_with("Ran out of memory of h100-80gb once and continued: needed "
                             "12.000 GiB at least, more than it allows itself; peak 6.000"))
      << sentence();
}

TEST_F(AnswerTest, WhatFailedForAnotherReasonSaysSo) {
  add_process(20 * kGiB);
  program_.wait_status = kExitCode1;
  const Answer said = answer();
  EXPECT_EQ(said.sentence,
            "Failed on h100-80gb (exit code 1), not for lack of its memory: until then peak at "
            "least 20.000 GiB of 80.000 GiB, context (0.500 GiB) not included; lower bound.");
  EXPECT_EQ(said.fits, std::nullopt);
  EXPECT_EQ(said.tone, Tone::bad);
}

TEST_F(AnswerTest, WhatFailedAfterAnOutOfMemoryThatItSurvived) {
  Ledger& ledger = add_process(60 * kGiB);
  run_out(ledger, 30 * kGiB, 55 * kGiB);
  ledger.kernel_launches = 7;
  program_.wait_status = kExitCode1;
  const Answer said = answer();
  EXPECT_TRUE(said.sentence.starts_with(
      "Failed on h100-80gb (exit code 1), after it ran out of memory and continued (asked for "
      "30.000 "
      "GiB (aten::empty at train.py:12) with 55.000 GiB in use of 80.000 GiB): until then peak"))
      << said.sentence;
  EXPECT_EQ(said.fits, std::nullopt);
}

TEST_F(AnswerTest, WhatThisMachineRefusedIsNotTheCards) {
  add_process(20 * kGiB).host_refusals = 1;
  program_.wait_status = kExitCode1;
  EXPECT_NE(sentence().find("and this machine refused it memory that the card had"),
            std::string::npos)
      << sentence();
}

// PyTorch calls it out of memory all the same.
TEST_F(AnswerTest, WhatThisMachineRefusedIsNoOutOfMemoryOfTheCard) {
  Ledger& ledger = add_process(20 * kGiB);
  ledger.host_refusals = 1;
  ledger.devices[0].out_of_memory_calls = 1;
  ledger.devices[0].last_needed_bytes = 40 * kGiB;
  program_.wait_status = kExitCode1;
  const Answer said = answer();
  EXPECT_EQ(said.fits, std::nullopt);
  EXPECT_NE(said.sentence.find("so it is unknown whether it fits"), std::string::npos)
      << said.sentence;
  run_out(ledger, 30 * kGiB, 55 * kGiB);  // the card refused some as well
  EXPECT_EQ(answer().fits, std::optional(false));
}

TEST_F(AnswerTest, WhatASignalEnded) {
  add_process(20 * kGiB).finished = 0;
  program_.wait_status = kKilled;
  EXPECT_EQ(sentence(),
            "Ended by signal 9 (Killed) on h100-80gb: until then peak at least 20.000 GiB of "
            "80.000 GiB, context (0.500 GiB) not included, process 4711 did not end by itself "
            "(os._exit, exec or a signal); lower bound.");
}

TEST_F(AnswerTest, AProcessThatDidNotEndByItself) {
  add_process(20 * kGiB).finished = 0;
  const Answer said = answer();
  EXPECT_TRUE(said.sentence.starts_with("Fits h100-80gb as far as is counted: peak at least 20"))
      << said.sentence;
  EXPECT_NE(
      said.sentence.find(", process 4711 did not end by itself (os._exit, exec or a signal);"),
      std::string::npos)
      << said.sentence;
  EXPECT_EQ(said.fits, std::nullopt);
}

TEST_F(AnswerTest, AnAttemptThatElasticTrainingEndedIsNoEnd) {
  Ledger& first = add_process(20 * kGiB, 0, 0);
  first.finished = 0;
  first.elastic_attempt = 0;
  add_process(20 * kGiB, 0, 0).elastic_attempt = 1;
  program_.card_peaks = {{20 * kGiB, 1}};
  EXPECT_EQ(answer().fits, true) << sentence();
  EXPECT_NE(sentence().find("(process 4711)"), std::string::npos) << "both are rank 0";
}

TEST_F(AnswerTest, ABoundOrAnUnreliableFigureShowsNoFit) {
  Ledger& ledger = add_process(20 * kGiB);
  add_read(ledger, ReadKind::size);
  EXPECT_TRUE(sentence().starts_with("May fit h100-80gb: peak 20.000 GiB of ")) << sentence();
  EXPECT_EQ(answer().fits, std::nullopt);
  assume_ = "nonzero=none";
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb as far as is counted: peak at least 20.000"))
      << sentence();
  EXPECT_EQ(answer().fits, std::nullopt);
  assume_ = "nonzero=all";
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb: peak at most 20.000 GiB of ")) << sentence();
  EXPECT_EQ(answer().fits, true);
}

TEST_F(AnswerTest, AMissingWorkspaceMayTakeWhatIsLeft) {
  Ledger& ledger = add_process(20 * kGiB);
  ledger.workspaces.count = 1;
  LedgerWorkspace& row = ledger.workspaces.rows[0];
  row.calls = row.uncounted_calls = 1;
  row.largest_allocated_bytes = 5 * kGiB;
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb as far as is counted: peak at least 20.000"))
      << "nobody counted what is held beside it: " << sentence();
  EXPECT_EQ(answer().fits, std::nullopt);
  row.uncounted_calls = 0;
  const Answer said = answer();
  EXPECT_EQ(said.sentence,
            "Fits h100-80gb unless one workspace of a vendor's library exceeds 59.500 GiB: peak at "
            "least 20.000 GiB of 80.000 GiB, context (0.500 GiB) not included; lower bound.");
  EXPECT_EQ(said.fits, true);
  program_.card_peaks[0].bytes = 80 * kGiB;
  EXPECT_TRUE(sentence().starts_with("May not fit h100-80gb with its CUDA context: "))
      << sentence();
}

TEST_F(AnswerTest, NoCardWasUsed) {
  EXPECT_EQ(sentence(),
            "Used no card: the program did not use CUDA, or not through the libraries that "
            "h100-80gb replaces.");
  program_.wait_status = kExitCode1;
  EXPECT_TRUE(
      sentence().starts_with("Used no card and ended with exit code 1: the program did not"))
      << sentence();
  EXPECT_EQ(to_json(answer()).at("card"), nullptr);
  program_.wait_status = 0;
  add_process(0);
  EXPECT_EQ(sentence(),
            "Used no card: the program asked which cards there are, and took no memory and started "
            "no kernel.");
  EXPECT_EQ(answer().fits, std::nullopt);
  owned_[0]->kernel_launches = 1;
  EXPECT_TRUE(sentence().starts_with("Fits h100-80gb: peak 0 B of 80.000 GiB, ")) << sentence();
}

}  // namespace
}  // namespace peakbench::emulator
