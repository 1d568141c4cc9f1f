// Histories of other versions, and files that cannot be used: nothing is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "history_fixture.h"
#include "reports/trends/keep.h"
#include "reports/trends/read.h"
#include "reports/trends/schema.h"
#include "reports/trends/source.h"

namespace peakbench::trends {
namespace {

using peakbench::testing::example_run;
using peakbench::testing::message_of;
using peakbench::testing::read_text;
using peakbench::testing::ScratchFolder;
using peakbench::testing::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(Histories, AnotherVersionIsRefusedAndLeftAlone) {
  add(1, 4096);
  for (const auto& [version, whose] : {std::pair(99, "a newer"), std::pair(6, "an older")}) {
    sql("PRAGMA user_version = " + std::to_string(version));
    const auto before = read_text(path_);
    for (const auto& message : {error_of_reading(), error_of_adding()}) {
      EXPECT_THAT(message, HasSubstr("written by " + std::string(whose) +
                                     " Peakbench: history version " + std::to_string(version)));
      EXPECT_THAT(message, HasSubstr(path_));
    }
    EXPECT_TRUE(read_text(path_) == before);
  }
}

TEST_F(Histories, AnotherProgramsDatabaseIsLeftAlone) {
  sql("CREATE TABLE mine (x)");
  const auto before = read_text(path_);
  EXPECT_THAT(error_of_reading(), HasSubstr("not a Peakbench history"));
  EXPECT_THAT(error_of_adding(), HasSubstr("not a Peakbench history"));
  EXPECT_TRUE(read_text(path_) == before);
}

TEST_F(Histories, FilesThatAreNone) {
  EXPECT_THAT(error_of_reading(), HasSubstr("there is no history here"));
  write_text(path_, std::string(5000, 'x'));
  EXPECT_THAT(error_of_reading(), HasSubstr("not an SQLite file"));
  EXPECT_THAT(error_of_adding(), HasSubstr("not an SQLite file"));
  EXPECT_EQ(read_text(path_), std::string(5000, 'x'));
  path_ = folder_.path();
  EXPECT_THAT(error_of_reading(), HasSubstr("a folder"));
  path_ = folder_ / "no/such/h.sqlite";
  EXPECT_THAT(error_of_adding(), HasSubstr("does not exist"));
}

TEST_F(Histories, LockedIsSaidAndNothingIsLost) {
  add(1, 4096);
  auto other = sqlite::Database::open_read_write(path_);
  other.execute("BEGIN EXCLUSIVE");
  EXPECT_THAT(error_of_adding(), HasSubstr("another program is writing"));
  EXPECT_THAT(error_of_reading(), HasSubstr("another program is writing"));
  other.execute("ROLLBACK");
  EXPECT_EQ(open().runs({}).size(), 1U);
}

TEST_F(Histories, CutShortIsSaid) {
  for (int day = 1; day < 9; ++day) add(day, 4096);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 8192);
  EXPECT_THAT(error_of_reading(), HasSubstr("damaged"));
  EXPECT_THAT(error_of_adding(), HasSubstr("export"));
}

TEST_F(Histories, ADamagedRecordIsThatRunsAlone) {
  add(1, 4096);
  add(2, 4096);
  sql("UPDATE records SET run_json = x'0102' WHERE run = 1");
  const auto history = open();
  EXPECT_THAT(message_of<ConfigError>([&] { history.record(1); }),
              HasSubstr("run 1 is damaged: its record is not as filed"));
  EXPECT_EQ(history.record(2).cases.size(), 2U);
  EXPECT_EQ(history.runs({}).size(), 2U);
}

TEST_F(Histories, ADamagedPageIsSaidWithTheWayOut) {
  for (int day = 1; day < 28; ++day) add(day, day);
  auto bytes = read_text(path_);
  for (std::size_t at = 3 * 4096; at < bytes.size(); ++at) bytes[at] = 'x';
  write_text(path_, bytes);
  EXPECT_THAT(error_of_adding(), HasSubstr("damaged"));
  EXPECT_THAT(error_of_adding(), HasSubstr("peakbench history export"));
}

TEST_F(Histories, AJournalLeftBehindIsRolledBackByAReader) {
  add(1, 4096);
  auto killed = sqlite::Database::open_read_write(path_);
  // With hardly any cache the pages of an unfinished transaction reach the file.
  killed.execute(
      "PRAGMA cache_size = 1; BEGIN; UPDATE runs SET branch = 'half'; "
      "UPDATE records SET run_json = randomblob(300000)");
  const auto copy = folder_ / "copy.sqlite";
  std::filesystem::copy_file(path_, copy);
  std::filesystem::copy_file(path_ + "-journal", copy + "-journal");
  killed.execute("ROLLBACK");
  const auto history = History::open_to_read(copy);
  EXPECT_EQ(history.run(1).labels.branch, "main");
  EXPECT_EQ(history.record(1).cases.size(), 2U);
  EXPECT_THAT(history.problems(), IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(copy + "-journal"));
}

TEST_F(Histories, WritersAtOnceLoseNothing) {
  open();
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&, writer] {
      for (int i = 0; i < 6; ++i)
        History::open_to_write(path_).add(run_of(1 + i, 100'000 * (writer + 1) + i), {}, {});
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(open().runs({}).size(), 24U);
  EXPECT_THAT(open().problems(), IsEmpty());
}

}  // namespace
}  // namespace peakbench::trends
