#include <gtest/gtest.h>

#include <sstream>

#include "records.h"
#include "reports/report.h"
#include "reports/text.h"

namespace peakbench::golden {
namespace {

class Width : public testing::TestWithParam<int> {};

TEST_P(Width, NoLineIsWider) {
  for (const result::Run& run :
       {tutorial_run(), emulated_run(), hostile_run(), interrupted_run()}) {
    std::istringstream lines(reports::main_table(run, GetParam()));
    for (std::string line; std::getline(lines, line);)
      EXPECT_LE(reports::display_width(line), GetParam()) << line;
  }
}

INSTANTIATE_TEST_SUITE_P(Terminal, Width, testing::Values(40, 60, 80, 100, 160));

TEST(Terminal, NarrowKeepsThePeakAndTheDifference) {
  const std::string table = reports::main_table(tutorial_run(), 40);
  EXPECT_NE(table.find("5.670"), std::string::npos);
  EXPECT_NE(table.find("−34.1%"), std::string::npos);
  EXPECT_EQ(table.find("ms/step"), std::string::npos);
}

TEST(Terminal, HostileNamesCannotMoveTheCursor) {
  const std::string table = reports::main_table(hostile_run(), 100);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace peakbench::golden
