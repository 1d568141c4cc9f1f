#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "records.h"
#include "reports/render/text.h"
#include "reports/run/report.h"

namespace peakbench::golden {
namespace {

class Width : public ::testing::TestWithParam<int> {};

TEST_P(Width, NoLineIsWider) {
  for (const records::Run& run :
       {tutorial_run(), emulated_run(), cards_run(), hostile_run(), interrupted_run()}) {
    std::istringstream lines(reports::main_table(run, GetParam()));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(reports::display_width(line), GetParam()) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Terminal, Width, ::testing::Values(40, 60, 80, 100, 160));

TEST(Terminal, NarrowKeepsThePeakAndTheDifference) {
  const std::string table = reports::main_table(tutorial_run(), 40);
  EXPECT_NE(table.find("5.670"), std::string::npos);
  EXPECT_NE(table.find("−34.1%"), std::string::npos);
  EXPECT_EQ(table.find("ms/step"), std::string::npos);
}

// Whether it fits a card, and what an offload costs the host, stay longer than times.
TEST(Terminal, NarrowKeepsReservedAndPinned) {
  const std::string table = reports::main_table(cards_run(), 60);
  const std::string first = table.substr(0, table.find("\n\n"));
  EXPECT_NE(first.find("reserved"), std::string::npos) << first;
  EXPECT_NE(first.find("3.250 GiB"), std::string::npos) << first;
  EXPECT_NE(first.find("pinned"), std::string::npos) << first;
  EXPECT_NE(first.find("5.000 GiB"), std::string::npos) << first;
  EXPECT_EQ(first.find("ms/step"), std::string::npos) << first;
  EXPECT_EQ(reports::main_table(tutorial_run(), 160).find("reserved"), std::string::npos)
      << "the CPU has no such figure";
}

// Where the column had no room, lines below the table say what a choice depends on.
TEST(Terminal, NarrowStillSaysWhatIsClaimedOrBroken) {
  const std::string narrow = reports::main_table(cards_run(), 100);
  EXPECT_NE(narrow.find("\nTraining is claimed, not checked here: offload, checkpointing.\n"),
            std::string::npos)
      << narrow;
  const std::string last = reports::main_table(cards_run(), 60);
  EXPECT_NE(last.find("\nTrains differently: lora, lora+checkpointing.\n"), std::string::npos)
      << last;
  const std::string wide = reports::main_table(cards_run(), 160);
  EXPECT_EQ(wide.find("Training is"), std::string::npos) << "the column says it";
  EXPECT_NE(wide.find("bit-identical (claimed)"), std::string::npos);
}

// The signs of a column that is not there are not explained.
TEST(Terminal, SaysWhatBrokeAPromise) {
  for (const int width : {60, 160}) {
    const std::string table = reports::main_table(cards_run(), width);
    EXPECT_NE(table.find("The training of wild is not what it promises: "), std::string::npos)
        << table;
  }
}

TEST(Terminal, SaysWhereMemoryTakesMoreSteps) {
  records::Run run = tutorial_run();
  run.cases[1].memory->period = {"lisa", 1200};
  EXPECT_NE(reports::main_table(run, 200).find(
                " may be larger: lisa shows it in 1200 steps, and 3 were measured (--steps "
                "1200).\n"),
            std::string::npos)
      << reports::main_table(run, 200);
  run.cases[1].memory->period->steps = 3;
  EXPECT_EQ(reports::main_table(run, 200).find("may be larger"), std::string::npos);
}

TEST(Terminal, SignsAreExplainedWhereTheyAreShown) {
  EXPECT_NE(reports::main_table(tutorial_run(), 100).find("\n~ not"), std::string::npos);
  EXPECT_EQ(reports::main_table(tutorial_run(), 40).find("\n~ not"), std::string::npos);
}

TEST(Terminal, SaysFromWhichStepALossIsNoNumber) {
  records::Run run = cards_run();
  const std::string table = reports::main_table(run, 100);
  EXPECT_NE(table.find("\nThe loss of wild is not a number from step 2.\n"), std::string::npos)
      << table;
  for (const double infinity : {HUGE_VAL, -HUGE_VAL}) {
    run.cases[0].losses = {infinity, 0.5};
    EXPECT_NE(
        reports::main_table(run, 100).find("\nThe loss of baseline is infinite from step 1.\n"),
        std::string::npos);
  }
  EXPECT_EQ(reports::main_table(tutorial_run(), 100).find("The loss of"), std::string::npos);
}

TEST(Terminal, SaysWhatACaseWouldNeed) {
  EXPECT_NE(reports::main_table(emulated_run(), 80)
                .find("out of memory, needs 96.000 GiB (reserved): asked"),
            std::string::npos);
}

TEST(Terminal, HostileNamesCannotMoveTheCursor) {
  const std::string table = reports::main_table(hostile_run(), 100);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace peakbench::golden
