// Histories: what is kept and found again, older and newer files, files that cannot be used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "reports/history/export.h"
#include "reports/history/packed.h"
#include "reports/history/prune.h"
#include "reports/history/reference.h"
#include "reports/history/schema.h"
#include "reports/history/source.h"
#include "reports/history/trend.h"
#include "result/errors.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench::history {
namespace {

using peakbench::testing::example_run;
using peakbench::testing::message_of;
using peakbench::testing::read_text;
using peakbench::testing::ScratchFolder;
using peakbench::testing::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two cases: peaks of so many bytes; `day` tells runs apart.
result::Run run_of(int day, std::int64_t bytes, const std::string& libtorch = "2.11.0") {
  auto run = example_run();
  run.status = "complete";
  run.pending.clear();
  run.created = "2026-01-" + std::string(day < 10 ? "0" : "") + std::to_string(day) + "T03:04:05Z";
  run.environment = {{"libtorch", libtorch}, {"commit", "abc"}, {"cpu", "A processor"}};
  run.cases[0].memory->peak_allocated_bytes = bytes;
  run.cases[0].memory->peak_requested_bytes = bytes - 511;
  auto other = run.cases[0];
  other.spec.id = "vit-l-16/baseline/cpu/fp32/b1";
  other.spec.device = "cpu";
  other.emulation.reset();
  run.cases.push_back(other);
  return run;
}

std::vector<compare::CaseParts> some_parts() {
  return {
      {"a case", {{"backward", "forward", "activation", "blocks.0.mlp", "aten::mm", 100, 512}}}};
}

class Histories : public ::testing::Test {
 protected:
  History open() { return History::open_to_write(path_, 200); }
  Added add(int day, std::int64_t bytes, const Labels& labels = {"main", "c0ffee", "", ""}) {
    return open().add(run_of(day, bytes), some_parts(), labels);
  }
  std::string error_of_reading() {
    return message_of<ConfigError>([&] { History::open_to_read(path_, 200).runs({}); });
  }
  std::string error_of_adding() {
    return message_of<ConfigError>([&] { add(28, 5000); });
  }
  void sql(const std::string& text) { sqlite::Database::open_read_write(path_).execute(text); }

  ScratchFolder folder_;
  std::string path_ = folder_ / "h.sqlite";
};

TEST_F(Histories, KeepTheWholeRun) {
  const auto run = run_of(1, 4096);
  const auto number = open().add(run, some_parts(), {"main", "c0ffee", "passed", "fine"}).number;
  const auto history = History::open_to_read(path_);
  EXPECT_EQ(to_json(history.record(number)).dump(), to_json(run).dump());
  EXPECT_EQ(history.parts(number), some_parts());
  const auto row = history.run(number);
  EXPECT_EQ(row.labels.branch, "main");
  EXPECT_EQ(row.labels.commit, "c0ffee");
  EXPECT_EQ(row.labels.verdict, "passed");
  EXPECT_EQ(row.labels.note, "fine");
  EXPECT_EQ(row.created, "2026-01-01T03:04:05Z");
  EXPECT_EQ(row.cases, 2);
  EXPECT_EQ(row.ok_cases, 2);
  EXPECT_EQ(row.conditions.libtorch, "2.11.0");
}

TEST_F(Histories, TheDriverIsTheCardsAndTheSuiteItsFilesName) {
  auto run = run_of(1, 4096);
  run.environment["driver_cuda_version"] = 12080;
  open().add(run, {}, {});
  run.suite = "/a/folder/suite.toml";
  run.cases[1].settings["driver_version"] = "580.95.05";
  open().add(run, {}, {});
  EXPECT_EQ(open().run(1).conditions.driver, "CUDA 12.8");
  EXPECT_EQ(open().run(2).conditions.driver, "580.95.05");
  EXPECT_EQ(open().run(2).suite, "suite.toml");
  EXPECT_EQ(difference(open().run(1).conditions, open().run(2).conditions),
            "driver CUDA 12.8 → 580.95.05");
}

TEST_F(Histories, TheSameRunTwiceIsOneRow) {
  const auto first = add(1, 4096), again = add(1, 4096, {"other", "c0ffee", "", ""});
  EXPECT_TRUE(first.is_new);
  EXPECT_FALSE(again.is_new);
  EXPECT_EQ(again.number, first.number);
  EXPECT_THAT(again.note, HasSubstr("stays filed under branch \"main\""));
  EXPECT_TRUE(add(1, 4097).is_new) << "another figure is another run";
  EXPECT_EQ(open().runs({}).size(), 2U);
}

TEST_F(Histories, EqualPartsAreKeptOnce) {
  const auto count = [&] {
    const auto database = sqlite::Database::open_read_only(path_);
    sqlite::Statement rows(database, "SELECT count(*) FROM parts");
    rows.next();
    return rows.integer(0);
  };
  add(1, 1);
  add(2, 2);
  EXPECT_EQ(count(), 1);
  auto others = some_parts();
  others[0].parts[0].block_bytes = 1024;
  open().add(run_of(3, 3), others, {});
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(open().parts(2), some_parts());
  EXPECT_EQ(open().parts(3), others);
  open().remove({1, 3});
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(open().parts(2), some_parts());
}

TEST_F(Histories, NumbersAreNeverGivenTwice) {
  add(1, 4096);
  const auto second = add(2, 4096).number;
  open().remove({second});
  EXPECT_GT(add(3, 4096).number, second);
}

TEST_F(Histories, CardsAreKeptApart) {
  add(1, 4096);
  auto run = run_of(2, 4096);
  run.environment["cpu"] = "Another processor";
  open().add(run, {}, {"main", "", "", ""});
  const auto history = open();
  std::vector<std::string> cards;
  for (const auto& series : history.series()) cards.push_back(series.card);
  EXPECT_THAT(cards, ElementsAre("emulated:h100-80gb", "A processor", "Another processor"));
  for (const auto& series : history.series("vit-l-16"))
    EXPECT_EQ(history.points(series.id, "main").size(), 1U) << series.card;
  EXPECT_EQ(history.series("", "another").size(), 1U);
  EXPECT_EQ(history.series("*/baseline/cpu/*").size(), 2U);
  EXPECT_EQ(history.series("baseline/cpu").size(), 2U);
  EXPECT_THAT(history.series("[v]it"), IsEmpty()) << "brackets are no pattern";
}

TEST_F(Histories, TrendsGoByTheOrderOfAddingAndSayWhatCannotBeCompared) {
  auto history = open();
  history.add(run_of(5, 4096), {}, {"main", "", "", ""});
  const auto back = history.add(run_of(2, 4608), {}, {"main", "", "", ""});
  EXPECT_THAT(back.note, HasSubstr("2026-01-02T03:04:05Z, before that of run 1"));
  history.add(run_of(3, 4608), {}, {"other", "", "", ""});
  history.add(run_of(6, 5120, "2.12.0"), {}, {"main", "", "", ""});
  Runs runs(history);
  const auto trend = trend_of(history, runs, history.series("qwen").front(), "main");
  ASSERT_EQ(trend.size(), 3U);
  EXPECT_EQ(trend[0].point.allocated_bytes, 4096);
  EXPECT_EQ(trend[1].point.allocated_bytes, 4608);
  EXPECT_TRUE(trend[1].clock_back);
  EXPECT_EQ(trend[1].break_reason, "");
  EXPECT_EQ(trend[2].break_reason, "LibTorch 2.11.0 → 2.12.0");
  EXPECT_EQ(trend_of(history, runs, history.series("qwen").front(), "main", 1).size(), 1U);
}

TEST_F(Histories, RefuseRunsThatCannotBeFiled) {
  auto running = run_of(1, 4096);
  running.status = "running";
  EXPECT_THAT(message_of<ConfigError>([&] { open().add(running, {}, {}); }), HasSubstr("--resume"));
  auto twice = run_of(1, 4096);
  twice.cases.push_back(twice.cases[0]);
  EXPECT_THAT(message_of<ConfigError>([&] { open().add(twice, {}, {}); }), HasSubstr("twice"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                add(1, 4096, {"", "", "pased", ""});
              }),
              HasSubstr("did you mean \"passed\"?"));
  EXPECT_THAT(open().runs({}), IsEmpty());
}

// --- References ---------------------------------------------------------------------------------

class References : public Histories {
 protected:
  References() {
    add(1, 1000, {"main", "aaaa1111", "passed", ""});
    add(2, 2000, {"main", "bbbb2222", "", ""});
    add(3, 3000, {"main", "bbbb3333", "regressed", ""});
    add(4, 4000, {"topic", "cccc4444", "", ""});
  }
  std::int64_t peak(const std::string& text) {
    return read_source(text, path_).run.cases[0].memory->peak_allocated_bytes;
  }
  std::string error(const std::string& text) {
    return message_of<ConfigError>([&] { read_source(text, path_); });
  }
};

TEST_F(References, FindRuns) {
  EXPECT_EQ(peak("history:"), 4000);
  EXPECT_EQ(peak("history:main"), 3000);
  EXPECT_EQ(peak("history:main@latest"), 3000);
  EXPECT_EQ(peak("history:main@previous"), 2000);
  EXPECT_EQ(peak("history:main@good"), 2000);
  EXPECT_EQ(peak("history:@1"), 1000);
  EXPECT_EQ(peak("history:@aaaa"), 1000);
  EXPECT_EQ(peak("history:main,card=h100"), 3000);
  EXPECT_EQ(peak("history:main,suite=suite.toml,card=h100"), 3000);
  EXPECT_EQ(read_source("history:main@good", path_).label, "main@good (run 2, bbbb2222)");
  EXPECT_EQ(read_source("history:main@good", path_).parts, some_parts());
  open().judge(3, "accepted", "wanted");
  EXPECT_EQ(peak("history:main@good"), 3000);
}

TEST_F(References, SayWhatDoesNotFit) {
  EXPECT_THAT(error("history:mian"), HasSubstr("did you mean \"main\"?"));
  EXPECT_THAT(error("history:main@bbbb"), HasSubstr("2 commits begin so"));
  EXPECT_THAT(error("history:main@x1"), HasSubstr("too short for a commit"));
  EXPECT_THAT(error("history:main,kard=x"), HasSubstr("did you mean \"card\"?"));
  EXPECT_THAT(error("history:main,card="), HasSubstr("card has no value"));
  EXPECT_THAT(error("history:topic@previous"), HasSubstr("no run of"));
  EXPECT_THAT(error("history:main,card=b200"), HasSubstr("no run of"));
  EXPECT_THAT(error("nowhere"), HasSubstr("no such file or folder"));
}

TEST(ReferenceText, IsRead) {
  EXPECT_FALSE(reference_from("results/main"));
  const auto slashes = reference_from("history:feature/a@b@123,card=x,suite=y");
  EXPECT_EQ(slashes->branch, "feature/a@b");
  EXPECT_EQ(slashes->which, Reference::Which::kNumber);
  EXPECT_EQ(slashes->number, 123);
  EXPECT_EQ(slashes->card, "x");
  EXPECT_EQ(slashes->suite, "y");
  EXPECT_EQ(reference_from("history:main@1234567")->which, Reference::Which::kCommit);
}

// --- Pruning, exporting -------------------------------------------------------------------------

TEST_F(Histories, PruneKeepsTheNewestAndTheNewestGood) {
  add(1, 1, {"main", "", "passed", ""});
  add(2, 2, {"main", "", "passed", ""});
  add(3, 3, {"main", "", "regressed", ""});
  add(4, 4, {"main", "", "regressed", ""});
  add(5, 5, {"topic", "", "", ""});
  const auto numbers = [&](const PruneRules& rules) {
    std::vector<std::int64_t> going;
    for (const auto& run : to_prune(open().runs({}), rules)) going.push_back(run.number);
    return going;
  };
  EXPECT_THAT(numbers({0, std::nullopt, ""}), ElementsAre(3, 1));
  EXPECT_THAT(numbers({2, std::nullopt, ""}), ElementsAre(1));
  EXPECT_THAT(numbers({std::nullopt, "2026-01-03T00:00:00Z", ""}), ElementsAre(1));
  EXPECT_THAT(numbers({3, "2026-01-09T00:00:00Z", ""}), ElementsAre(1));
  EXPECT_THAT(numbers({0, std::nullopt, "topic"}), IsEmpty());
}

TEST_F(Histories, RemovingGivesTheSpaceBack) {
  std::vector<std::int64_t> numbers;
  for (int day = 1; day < 28; ++day) numbers.push_back(add(day, day).number);
  const auto before = std::filesystem::file_size(path_);
  EXPECT_EQ(open().remove(numbers), numbers.size());
  EXPECT_LT(std::filesystem::file_size(path_), before);
  EXPECT_THAT(open().series(), IsEmpty());
  EXPECT_THAT(open().problems(), IsEmpty());
}

TEST(Ages, AreMoments) {
  const std::int64_t now = 1'767'225'600;  // 2026-01-01T00:00:00Z
  EXPECT_EQ(moment_before("1d", now), "2025-12-31T00:00:00Z");
  EXPECT_EQ(moment_before("2w", now), "2025-12-18T00:00:00Z");
  EXPECT_EQ(moment_before("1y", now), "2025-01-01T00:00:00Z");
  EXPECT_EQ(moment_before("2024-02-29", now), "2024-02-29T00:00:00Z");
  for (const char* bad : {"", "d", "90", "90x", "-1d", "999999999d", "2024-2-9"})
    EXPECT_THROW(moment_before(bad, now), ConfigError) << bad;
}

TEST_F(Histories, LinesMakeTheSameHistory) {
  add(1, 1000, {"main", "aaaa1111", "passed", "a note"});
  const auto history = open();
  const auto line = read_line(line_of(history, history.run(1)));
  EXPECT_EQ(to_json(line.run).dump(), to_json(history.record(1)).dump());
  EXPECT_EQ(line.parts, some_parts());
  EXPECT_EQ(line.labels.note, "a note");
  EXPECT_FALSE(open().add(line.run, line.parts, line.labels).is_new);
  EXPECT_THROW(read_line("{\"history_line\": 1, \"run\""), ConfigError);
  EXPECT_THAT(message_of<ConfigError>([] { read_line("{\"history_line\": 2}"); }),
              HasSubstr("newer"));
  EXPECT_THAT(message_of<ConfigError>([] { read_line("{}"); }), HasSubstr("no line of a history"));
}

// --- Files of other versions, and files that cannot be used -------------------------------------

TEST_F(Histories, AnOlderVersionIsBroughtUp) {
  {
    auto database = sqlite::Database::open_read_write(path_);
    migrate(database, 1);
    database.execute(
        "INSERT INTO runs VALUES (7, 'then', '2026-01-01T03:04:05Z', 't', '', 'complete', 'main', "
        "'c', '', '', '', '', 3, '', '', 0, 0, 0)");
    sqlite::Statement record(database, "INSERT INTO records VALUES (7, x'', 0, ?, ?)");
    const auto text = compare::to_json(some_parts()).dump(), packed = pack(text);
    record.bind_blob(0, packed);
    record.bind(1, static_cast<std::int64_t>(text.size()));
    record.run();
    ASSERT_EQ(version_of(database), 1);
  }
  const auto history = History::open_to_read(path_);
  EXPECT_EQ(history.run(7).labels.verdict, "");
  EXPECT_EQ(history.parts(7), some_parts());
  EXPECT_EQ(add(2, 4096).number, 8);
  EXPECT_EQ(version_of(sqlite::Database::open_read_only(path_)), kHistoryVersion);
}

TEST_F(Histories, ANewerVersionIsRefusedAndLeftAlone) {
  add(1, 4096);
  sql("PRAGMA user_version = 99");
  const auto before = read_text(path_);
  for (const auto& message : {error_of_reading(), error_of_adding()}) {
    EXPECT_THAT(message, HasSubstr("written by a newer Peakbench: history version 99"));
    EXPECT_THAT(message, HasSubstr(path_));
  }
  EXPECT_TRUE(read_text(path_) == before);
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
              HasSubstr("run 1: its compressed text is damaged"));
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
        History::open_to_write(path_).add(run_of(1 + i, 1000 * writer + i), {}, {});
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(open().runs({}).size(), 24U);
  EXPECT_THAT(open().problems(), IsEmpty());
}

}  // namespace
}  // namespace peakbench::history
