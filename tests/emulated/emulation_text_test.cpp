// What `peakbench emulate` prints, from records alone, in narrow and wide windows.
#include "emulator/host/emulation_text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "base/columns.h"
#include "base/numbers.h"
#include "emulator/host/card_use.h"
#include "program_fixture.h"

namespace peakbench::emulator {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class EmulationTextTest : public ProgramFixture {
 protected:
  std::string text(int columns = 80, bool colours = false, View view = View::kDetails) {
    const auto said = answer();
    return emulation_text(
        program_, said, {.view = view, .colours = colours, .width = [columns] { return columns; }});
  }

  std::string table(int columns) { return process_table(card_uses(program_.ledgers), columns); }

  void add_ranks(int count) {
    for (int rank = 0; rank < count; ++rank)
      add_process(kGiB, static_cast<std::uint64_t>(rank % 64), rank);
  }

  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }

  static void add_read(Ledger& ledger, ReadKind kind, bool known) {
    LedgerReads& reads = known ? ledger.known_reads : ledger.reads[static_cast<std::size_t>(kind)];
    LedgerReadBack& row = reads.rows[reads.count++];
    row.kind = kind;
    std::snprintf(row.operation, sizeof row.operation, "aten::item");
    std::snprintf(row.function, sizeof row.function, "local_scalar_dense");
    std::snprintf(row.library, sizeof row.library, "libtorch_cuda.so");
    row.calls = 3;
    row.bytes = 12;
    if (!known) row.substitute_calls = 3;
  }
};

TEST_F(EmulationTextTest, TheAnswerIsTheFirstLineAndTheVerdictFollows) {
  add_process(118 * kMiB);
  const auto lines = lines_of(text());
  EXPECT_EQ(lines[0], "");
  EXPECT_EQ(lines[1], answer().sentence);
  EXPECT_EQ(lines[2], "Verdict: exact");
  EXPECT_EQ(lines[3], "");
}

TEST_F(EmulationTextTest, TheSummaryHasTheVerdictInASentence) {
  auto& process = add_process(118 * kMiB);
  EXPECT_EQ(text(200, false, View::kSummary), "\n" + short_answer(program_, answer()) + "\n");
  add_read(process, ReadKind::floating, false);
  const auto lines = lines_of(text(400, false, View::kSummary));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_THAT(lines[2],
              StartsWith("Verdict: exact if the program's path does not depend on this: "));
  EXPECT_THAT(lines[2], HasSubstr(". To do: --second-guess "));
}

TEST(SizeText, EachSizeHasAUnitThatShowsIt) {
  EXPECT_EQ(size_text(0), "0 B");
  EXPECT_EQ(size_text(512), "512 B");
  EXPECT_EQ(size_text(3 << 10), "3.0 KiB");
  EXPECT_EQ(size_text(12 * kMiB), "12.0 MiB");
  EXPECT_EQ(size_text(102 * kMiB), "102.0 MiB");
  EXPECT_EQ(size_text(118 * kMiB), "0.115 GiB");
  EXPECT_EQ(size_text(1325 * kMiB), "1.294 GiB");
  EXPECT_EQ(size_text(2000 * kGiB), "2000.000 GiB");
}

TEST_F(EmulationTextTest, OneProcess) {
  add_process(118 * kMiB);
  EXPECT_EQ(table(42),
            "process        peak  allocated   reserved\n"
            "4711      0.115 GiB   59.0 MiB  0.115 GiB\n");
  EXPECT_EQ(table(40),
            "process        peak  allocated\n"
            "4711      0.115 GiB   59.0 MiB\n");
}

TEST_F(EmulationTextTest, FourRanksAreFourRowsOfOneTable) {
  add_ranks(4);
  owned_[3]->devices[0].peak_pool_bytes = 512;
  owned_[2]->peak_pinned_bytes = 3 << 10;
  EXPECT_EQ(table(80),
            "rank      process  card       peak  allocated   reserved  in pools   pinned\n"
            "0         4711     0     1.000 GiB  0.500 GiB  1.000 GiB\n"
            "1         4712     1     1.000 GiB  0.500 GiB  1.000 GiB\n"
            "2         4713     2     1.000 GiB  0.500 GiB  1.000 GiB            3.0 KiB\n"
            "3         4714     3     1.000 GiB  0.500 GiB  1.000 GiB     512 B\n");
  const auto wide = lines_of(table(200));
  ASSERT_EQ(wide.size(), 5u);
  EXPECT_EQ(wide[0],
            "rank      process  card       peak  allocated   reserved  in pools   pinned  "
            "peak, bytes  allocated, bytes  reserved, bytes");
  EXPECT_EQ(wide[1],
            "0         4711     0     1.000 GiB  0.500 GiB  1.000 GiB                      "
            "1073741824         536870912       1073741824");
}

TEST_F(EmulationTextTest, NoLineOfTheTableIsWiderThanTheWindow) {
  add_ranks(4);
  run_out(*owned_[1], 30 * kGiB, 60 * kGiB);
  for (Ledger* ledger : {owned_[0].get(), owned_[1].get()}) {
    ledger->peak_pinned_bytes = 12 * kMiB;
    ledger->devices[0].peak_pool_bytes = 512;
    ledger->devices[0].peak_virtual_bytes = 900 * kMiB;
  }
  for (const int columns : {40, 60, 80, 100, 130, 200})
    for (const auto& line : lines_of(table(columns)))
      EXPECT_LE(display_width(line), columns) << line;
  EXPECT_THAT(table(80), HasSubstr("reserved"));
  EXPECT_THAT(table(80), HasSubstr("refused"));
  EXPECT_THAT(table(80), Not(HasSubstr("by virtual memory")));
  EXPECT_THAT(table(200), HasSubstr("by virtual memory"));
  EXPECT_THAT(table(200), HasSubstr(std::to_string(kGiB)));
}

TEST_F(EmulationTextTest, OfManyRanksThoseThatTookTheSameShareARow) {
  add_ranks(64);
  owned_[5]->devices[0].peak_used_bytes += 2 * kMiB;
  EXPECT_EQ(table(80),
            "rank      process    card       peak  allocated   reserved  peak, bytes\n"
            "0-4       4711-4715  0-4   1.000 GiB  0.500 GiB  1.000 GiB   1073741824\n"
            "5         4716       5     1.002 GiB  0.500 GiB  1.000 GiB   1075838976\n"
            "6-63      4717-4774  6-63  1.000 GiB  0.500 GiB  1.000 GiB   1073741824\n");
  for (int rank = 0; rank < 64; ++rank)
    owned_[rank]->devices[0].peak_used_bytes = (rank + 1) * kGiB / 64;
  const auto lines = lines_of(table(80));
  ASSERT_EQ(lines.size(), 18u) << table(80);
  EXPECT_THAT(lines[1], StartsWith("48 ")) << "the largest, in their order";
  EXPECT_THAT(lines[16], StartsWith("63 "));
  EXPECT_EQ(lines[17], "... and 48 more, which took no more than these (--json has all)");
}

TEST_F(EmulationTextTest, BeforeTheTableStandsNothingOfAnyRank) {
  add_ranks(4);
  for (const auto& ledger : owned_) add_read(*ledger, ReadKind::integer, true);
  const auto lines = lines_of(text());
  const auto head =
      std::ranges::find_if(lines, [](auto& line) { return line.starts_with("rank"); });
  EXPECT_EQ(head - lines.begin(), 4);
}

TEST_F(EmulationTextTest, WhatRanksDidAlikeIsSaidOnce) {
  add_ranks(4);
  for (const auto& ledger : owned_) {
    add_read(*ledger, ReadKind::integer, true);
    ledger->kernel_launches = 10;
  }
  add_read(*owned_[1], ReadKind::floating, false);
  EXPECT_THAT(text(),
              HasSubstr("\n4 processes, 4711 to 4714  python3 train.py\n"
                        "  read back  floating by aten::item in local_scalar_dense "
                        "(libtorch_cuda.so): 3 calls, 12 "
                        "bytes; 3 with plausible values in place of unknown ones; in rank 1\n"
                        "  read back  integer by aten::item in local_scalar_dense "
                        "(libtorch_cuda.so): 12 calls, 48 "
                        "bytes; known: copied there by the program, or computed; in 4 processes\n"
                        "  40 kernel launches, none run\n"));
}

TEST_F(EmulationTextTest, HelpersThatTookNothingAreALine) {
  add_process(kGiB);
  add_process(0);
  add_process(0);
  EXPECT_THAT(text(), HasSubstr("\n2 more processes asked for a card and took no memory of it\n"));
  EXPECT_EQ(lines_of(table(80)).size(), 2u);
}

TEST_F(EmulationTextTest, CountsThatAreNotKnownOrAreLeastOnes) {
  add_process(kGiB).counts_known = 0;
  add_process(kGiB, 1).finished = 0;
  Ledger& third = add_process(kGiB, 2);
  third.finished = 0;
  third.devices[0].peak_allocated_bytes = 0;
  EXPECT_THAT(table(80), HasSubstr("1.000 GiB       unknown       unknown"));
  EXPECT_THAT(table(80), HasSubstr(">= 0.500 GiB  >= 1.000 GiB"));
  EXPECT_THAT(text(), HasSubstr("PyTorch's peaks (allocated, reserved) are not known: none of its "
                                "operators used the card; in process 4711\n"));
  EXPECT_THAT(text(), HasSubstr("are not known: the process ended before they were counted; in "
                                "process 4713\n"));
  EXPECT_THAT(text(),
              HasSubstr("2 processes, 4712 to 4713 (did not end by itself)  python3 train.py\n"));
}

TEST_F(EmulationTextTest, OutOfMemoryHasItsFigures) {
  run_out(add_process(60 * kGiB), 30 * kGiB, 60 * kGiB);
  program_.wait_status = kExitCode1;
  EXPECT_THAT(text(),
              HasSubstr("process 4711, cuda:0: out of memory: the card refused 2 requests, "
                        "PyTorch's second tries included; the largest that was "
                        "refused: 30.000 GiB; PyTorch would have needed 60.000 GiB at least "
                        "(64424509440 bytes)"));
  EXPECT_THAT(text(), HasSubstr("The program ended with exit code 1.\n"));
}

TEST_F(EmulationTextTest, CardsThatProcessesShare) {
  add_process(kGiB);
  add_process(2 * kGiB);
  EXPECT_THAT(text(), HasSubstr("card 0  peak 3.000 GiB of 80.000 GiB  (3221225472 bytes; 2 "
                                "processes together)\n"));
}

TEST_F(EmulationTextTest, TheContextIsSaidWhereverItIsCounted) {
  add_process(kGiB);
  EXPECT_THAT(text(), HasSubstr("\nCUDA context: not in these figures; 512 MiB were measured on "
                                "such a card ("));
  program_.card.facts.context_bytes = kGiB;
  EXPECT_THAT(text(), HasSubstr("\nCUDA context: 1.000 GiB set aside for each process, in the "
                                "answer's peak and in no other figure; 512 MiB were measured"));
}

TEST_F(EmulationTextTest, NoProcesses) {
  EXPECT_THAT(text(), StartsWith("\nUsed no card: the program did not use CUDA"));
  EXPECT_THAT(
      text(),
      HasSubstr("libraries of CUDA 12 and 13. It cannot replace another major version of CUDA"));
  EXPECT_THAT(text(), HasSubstr("LD_PRELOAD must reach the program"));
  EXPECT_EQ(table(80), "");
}

TEST_F(EmulationTextTest, ColoursOnlyWhereTheyAreWanted) {
  add_process(kGiB);
  EXPECT_THAT(text(), Not(HasSubstr("\x1b")));
  EXPECT_THAT(text(80, true), StartsWith("\n\x1b[32mFits h100-80gb\x1b[0m: peak"));
  owned_[0]->finished = 0;
  EXPECT_THAT(text(80, true), StartsWith("\n\x1b[33mFits h100-80gb as far as is counted\x1b[0m: "));
  owned_[0]->finished = 1;
  run_out(*owned_[0], kGiB, kGiB);
  program_.wait_status = kExitCode1;
  EXPECT_THAT(text(80, true), StartsWith("\n\x1b[31mDoes not fit h100-80gb\x1b[0m: asked"));
}

TEST_F(EmulationTextTest, NamesCannotMoveTheCursor) {
  Ledger& ledger = add_process(kGiB);
  std::snprintf(ledger.command, sizeof ledger.command, "python3 \x1b[2Jevil");
  program_.card.spec = "\x1b[2Jcard.json";
  EXPECT_THAT(text(80, true), Not(HasSubstr("\x1b[2J")));
}

}  // namespace
}  // namespace peakbench::emulator
