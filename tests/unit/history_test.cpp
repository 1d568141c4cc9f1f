// Histories: what is kept and found again.
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

TEST_F(Histories, ACasesOwnCardIsItsTrend) {
  auto run = run_of(1, 4096);
  run.environment["card"] = "NVIDIA A100";
  run.environment["driver_cuda_version"] = 12080;
  run.cases.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    auto& result = run.cases[i];
    result.emulation.reset();
    result.environment = nlohmann::json::object();
    result.spec.device = "cuda:" + std::to_string(i);
    result.spec.id = "vit-l-16/baseline/" + result.spec.device + "/fp32/b1";
  }
  run.cases[1].environment = {{"card", "NVIDIA L4"}, {"driver_cuda_version", 13000}};
  open().add(run, {}, {});
  std::vector<std::string> cards;
  for (const auto& series : open().series()) cards.push_back(series.card);
  EXPECT_THAT(cards, ElementsAre("NVIDIA A100", "NVIDIA L4")) << "the run's where a case has none";
  EXPECT_EQ(open().run(1).conditions.driver, "CUDA 13.0");
}

TEST_F(Histories, NoEffectIsFiledAsItIs) {
  auto run = run_of(1, 4096);
  run.cases[0].status = records::Status::kNoEffect;
  open().add(run, {}, {});
  EXPECT_EQ(open().run(1).ok_cases, static_cast<std::int64_t>(run.cases.size()) - 1);
  const auto series = open().series(run.cases[0].spec.id);
  ASSERT_EQ(series.size(), 1U);
  EXPECT_EQ(open().points(series[0].id, "").at(0).status, "no_effect");
}

TEST_F(Histories, WhatTheMachineFailedIsNoPoint) {
  auto run = run_of(1, 4096);
  run.cases[0].status = records::Status::kHostFailure;
  open().add(run, {}, {});
  const auto count = static_cast<std::int64_t>(run.cases.size()) - 1;
  EXPECT_EQ(open().run(1).cases, count);
  EXPECT_EQ(open().run(1).ok_cases, count);
  EXPECT_TRUE(open().series(run.cases[0].spec.id).empty());
  for (auto& one : run.cases) one.status = records::Status::kHostFailure;
  EXPECT_THROW(open().add(run, {}, {}), ConfigError);
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
  EXPECT_THAT(back.note, HasSubstr("2026-01-02T03:04:05Z, earlier than the previous run 1"));
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

TEST_F(Histories, SayHowFarFiguresCanBeReliedOn) {
  auto run = run_of(1, 4096);
  run.cases[0].emulation->verdict = records::Verdict{};
  run.cases[0].emulation->verdict->kind = records::VerdictKind::lower_bound;
  auto history = open();
  history.add(run, {}, {"main", "", "", ""});
  const auto figures = [&](const std::string& case_id) {
    return history.points(history.series(case_id).front().id, "main", -1).front().figures;
  };
  EXPECT_EQ(figures("qwen"), "lower bound");
  EXPECT_EQ(figures("vit"), "") << "a processor's are counted";
  EXPECT_THAT(history.problems(), IsEmpty());
  sql("UPDATE cases SET figures = 'exact' WHERE figures = 'lower bound'");
  EXPECT_FALSE(history.points(history.series("qwen").front().id, "main", -1).front().sound);
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
  open().set_verdict(3, "accepted", "wanted");
  EXPECT_EQ(peak("history:main@good"), 3000);
}

TEST_F(References, SayWhatDoesNotFit) {
  EXPECT_THAT(error("history:mian"), HasSubstr("did you mean \"main\"?"));
  EXPECT_THAT(error("history:main@bbbb"), HasSubstr("2 commits begin with it"));
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
  EXPECT_EQ(slashes->filter.branch, "feature/a@b");
  EXPECT_EQ(slashes->filter.number, 123);
  EXPECT_EQ(slashes->filter.card, "x");
  EXPECT_EQ(slashes->filter.suite, "y");
  EXPECT_EQ(reference_from("history:main@1234567")->filter.commit, "1234567");
}

// Git allows commas in the names of branches.
TEST(ReferenceText, ACommaIsPartOfABranch) {
  const auto commas = reference_from("history:a,b, c@good,suite=x.toml");
  EXPECT_EQ(commas->filter.branch, "a,b, c");
  EXPECT_TRUE(commas->filter.good);
  EXPECT_EQ(commas->filter.suite, "x.toml");
  EXPECT_EQ(reference_from("history:a,b")->filter.branch, "a,b");
  EXPECT_EQ(reference_from("history:,@5")->filter.branch, ",");
}

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

}  // namespace
}  // namespace peakbench::trends
