// Two builds before and while they are timed: which are refused, what their folder may hold, and
// the record of it all. Runners that start nothing; pairs themselves are in ab_pairs_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ab/folder.h"
#include "ab/measure.h"
#include "errors/errors.h"
#include "files/own_file.h"
#include "launch/run_folder.h"
#include "support/fake_plan.h"
#include "support/plugin_file.h"
#include "support/scratch.h"

namespace peakbench::ab {
namespace {

namespace fs = std::filesystem;
using namespace peakbench::testing;
using ::testing::HasSubstr;
using Cases = std::vector<plan::PlannedCase>;

TEST(CheckPairs, StrategiesMayDiffer) {
  check_pairs({planned_case("m", "baseline")}, {planned_case("m", "lora")});
  check_pairs({}, {});
}

TEST(CheckPairs, EveryCaseHasItsCounterpart) {
  const Cases two{planned_case("m", "baseline"), planned_case("m", "lora")};
  const auto message = message_of<ConfigError>([&] { check_pairs(two, {two[0]}); });
  EXPECT_THAT(message, HasSubstr("BASE has 2 cases and NEW 1"));
  EXPECT_THAT(message, HasSubstr("Name each stack once"));
}

TEST(CheckPairs, NothingElseMayDiffer) {
  const Cases base{planned_case("m", "baseline"), planned_case("m", "lora")};
  auto now = base;
  now[1].spec.sequence_length = 128;
  now[1].spec.id += "/s128";
  const auto message = message_of<ConfigError>([&] { check_pairs(base, now); });
  EXPECT_THAT(message, HasSubstr("m/lora/cpu/fp32/b1 in BASE and m/lora/cpu/fp32/b1/s128 in NEW"));
  EXPECT_THAT(message, HasSubstr("--seq"));
}

nlohmann::json tiny_model() {
  return {{"kind", "model"},
          {"entries",
           {{{"id", "tiny"},
             {"title", "Tiny"},
             {"summary", "A model."},
             {"source_url", ""},
             {"options", nlohmann::json::array()},
             {"family", "decoder"},
             {"facts", {"blocks"}},
             {"has_sequence", false},
             {"default_sequence_length", 0},
             {"parameters", 1000}}}}};
}

nlohmann::json strategy(const std::string& id, const std::vector<std::string>& slots) {
  return {{"kind", "strategy"},
          {"entries",
           {{{"id", id},
             {"title", id},
             {"summary", id},
             {"source_url", ""},
             {"options", nlohmann::json::array()},
             {"order", id == "baseline" ? 0 : 10},
             {"slots", slots},
             {"wrappers", nlohmann::json::array()},
             {"capabilities", nlohmann::json::array()},
             {"needs", nlohmann::json::array()},
             {"conflicts", nlohmann::json::array()},
             {"promise", "bit_identical"}}}}};
}

class OpenBuild : public ::testing::Test {
 protected:
  OpenBuild() {
    fs::create_directories(scratch / "bin");
    fs::create_directories(plugin(""));
    write_text(scratch / "bin/peakbench-worker", "");
    fs::permissions(scratch / "bin/peakbench-worker", fs::perms::owner_all);
    write_text(plugin("tiny.so"), plugin_bytes(tiny_model()));
    write_text(plugin("baseline.so"), plugin_bytes(strategy("baseline", {})));
    write_text(plugin("rival.so"), plugin_bytes(strategy("rival", {"adapters"})));
    write_text(plugin("slim.so"), plugin_bytes(strategy("slim", {"adapters"})));
    order.folder = scratch.path();
    order.request.lists[result::Axis::kModel] = {"tiny"};
    order.request.lists[result::Axis::kStrategy] = {"baseline"};
    order.request.lists[result::Axis::kDevice] = {"cpu"};
  }

  std::string plugin(const std::string& name) const {
    return scratch / ("lib/peakbench/plugins/" + name);
  }
  Build open() {
    return open_build(order, [this](const std::string& text) { left_out.push_back(text); });
  }
  std::string refusal() {
    return message_of<ConfigError>([this] { open(); });
  }

  ScratchFolder scratch;
  BuildOrder order;
  std::vector<std::string> left_out;
};

TEST_F(OpenBuild, HasItsCasesAndItsWorker) {
  const auto build = open();
  ASSERT_EQ(build.plan.cases.size(), 1U);
  EXPECT_EQ(build.plan.cases[0].spec.id, "tiny/baseline/cpu/fp32/b1");
  EXPECT_NE(build.runner, nullptr);
  EXPECT_TRUE(left_out.empty());
}

TEST_F(OpenBuild, AFolderWithoutAWorkerIsNone) {
  fs::remove(scratch / "bin/peakbench-worker");
  EXPECT_THAT(refusal(), HasSubstr(order.folder + ": no bin/peakbench-worker there"));
}

TEST_F(OpenBuild, AnEmulatedCardHasNoTimes) {
  order.request.lists[result::Axis::kDevice] = {"emulated:h100-80gb"};
  EXPECT_THAT(refusal(), HasSubstr("--device emulated:h100-80gb: an emulated card"));
}

TEST_F(OpenBuild, ACaseThatCannotRunIsRefused) {
  order.request.lists[result::Axis::kStrategy] = {"slim+rival"};
  EXPECT_THAT(refusal(), HasSubstr("in " + order.folder + ": "));
}

// It may be the plugin whose name is then unknown.
TEST_F(OpenBuild, APluginThatIsLeftOutIsToldBeforeTheCasesArePlanned) {
  write_text(plugin("slim.so"), "no library");
  order.request.lists[result::Axis::kStrategy] = {"slim"};
  EXPECT_THAT(refusal(), HasSubstr("unknown strategy \"slim\""));
  ASSERT_EQ(left_out.size(), 1U);
  EXPECT_THAT(left_out[0], HasSubstr("slim.so"));
}

TEST_F(OpenBuild, PluginsBesideItsOwnCount) {
  ScratchFolder more;
  fs::rename(plugin("slim.so"), more / "slim.so");
  order.plugins = {more.path()};
  order.request.lists[result::Axis::kStrategy] = {"slim"};
  EXPECT_EQ(open().plan.cases[0].spec.id, "tiny/slim/cpu/fp32/b1");
}

class AbFolder : public ::testing::Test {
 protected:
  std::string refusal() {
    return message_of<ConfigError>([this] { make_folder(folder); });
  }
  void put(const std::string& name, const std::string& text) {
    const fs::path path = fs::path(folder) / name;
    fs::create_directories(path.parent_path());
    write_text(path.string(), text);
  }

  ScratchFolder scratch;
  std::string folder = scratch / "results/ab";
};

TEST_F(AbFolder, IsMadeWithItsParents) {
  make_folder(folder);
  EXPECT_TRUE(fs::is_directory(folder));
  EXPECT_TRUE(fs::is_empty(folder));
  make_folder(folder);
}

TEST_F(AbFolder, AnotherResultIsNobodysToReplace) {
  put(result::kAbFile, "{}");
  EXPECT_THAT(refusal(), HasSubstr("it was not written by Peakbench"));
  put(result::kAbFile, files::marked(result::kAbFile, "{\n  \"a\": 1\n}\n") + " ");
  EXPECT_THAT(refusal(), HasSubstr("changed since Peakbench wrote it"));
}

TEST_F(AbFolder, WhatLiesWhereABuildsFilesGoIsLeftAlone) {
  for (const std::string side : {kBaseFolder, kNewFolder}) {
    put(side + "/notes.txt", "mine");
    EXPECT_THAT(refusal(), HasSubstr((fs::path(folder) / side).string() + " is there"));
    EXPECT_EQ(read_text(folder + "/" + side + "/notes.txt"), "mine");
    fs::remove(folder + "/" + side + "/notes.txt");
    make_folder(folder);  // an empty one
  }
}

TEST_F(AbFolder, AnEarlierResultsFoldersAreOurs) {
  put(result::kAbFile, files::marked(result::kAbFile, "{\n  \"a\": 1\n}\n"));
  put("base/cases/one/worker.log", "");
  make_folder(folder);
}

TEST_F(AbFolder, IsNotSharedWithARunAtWork) {
  const launch::RunFolder other(folder);
  EXPECT_THAT(refusal(), HasSubstr("another peakbench is writing to"));
}

class Measuring : public ::testing::Test {
 protected:
  Measuring() {
    order.base.folder = "builds/base";
    order.now.folder = "builds/new";
    order.base.request.steps = 7;
    order.base.request.warmup = 2;
    order.pairs = 2;
    order.seed = 5;
    order.folder = scratch / "out";
    order.command = {"ab", "builds/base", "builds/new"};
    builds.base = build("baseline", base);
    builds.now = build("slim", now);
  }
  static Build build(const std::string& stack, FakeRunner*& runner) {
    auto owned = std::make_unique<FakeRunner>();
    runner = owned.get();
    return {plan_of({planned_case("m", stack), planned_case("n", stack)}), std::move(owned)};
  }
  Measured measure() {
    return ab::measure(order, builds,
                       [this](std::int64_t number, const Pair&) { told.push_back(number); });
  }

  ScratchFolder scratch;
  Order order;
  Builds builds;
  FakeRunner *base = nullptr, *now = nullptr;
  std::vector<std::int64_t> told;
};

TEST_F(Measuring, RecordsWhatWasAskedAndEveryPair) {
  const auto found = measure();
  const auto& run = found.run;
  EXPECT_FALSE(found.interrupted);
  EXPECT_EQ(told, (std::vector<std::int64_t>{1, 2, 1, 2}));
  EXPECT_EQ(run.base, "builds/base");
  EXPECT_EQ(run.now, "builds/new");
  EXPECT_EQ(run.command, order.command);
  EXPECT_EQ((std::vector{run.pairs, run.steps, run.warmup, run.threads}),
            (std::vector<std::int64_t>{2, 7, 2, 0}));
  EXPECT_EQ(run.seed, 5U);
  EXPECT_TRUE(run.environment.contains("cpu"));
  EXPECT_TRUE(run.environment.contains("load_average"));
  EXPECT_EQ(run.created.size(), std::string("2026-01-01T00:00:00Z").size());
  ASSERT_EQ(run.cases.size(), 2U);
  EXPECT_EQ(run.cases[1].id, "n/baseline/cpu/fp32/b1");
  EXPECT_EQ(run.cases[1].new_id, "n/slim/cpu/fp32/b1");
  ASSERT_EQ(run.cases[1].pairs.size(), 2U);
  EXPECT_EQ(run.cases[1].pairs[0].base_ns, (std::vector<std::int64_t>{4, 2, 3}));
}

TEST_F(Measuring, EachBuildHasAFolderOfItsOwn) {
  measure();
  ASSERT_EQ(base->orders.size(), 4U);
  EXPECT_EQ(base->orders[0].log_path, scratch / "out/base/cases/m-baseline/worker.log");
  EXPECT_EQ(now->orders[0].log_path, scratch / "out/new/cases/m-slim/worker.log");
}

TEST_F(Measuring, ACaseThatFailsKeepsItsReasonAndTheNextIsMeasured) {
  base->answer = [](const launch::WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    if (order.job.case_id.starts_with("m/")) report.result.status = result::Status::kCrashed;
    return report;
  };
  const auto found = measure();
  EXPECT_THAT(found.run.cases[0].problem, HasSubstr("BASE: crashed"));
  EXPECT_TRUE(found.run.cases[0].pairs.empty());
  EXPECT_EQ(found.run.cases[1].problem, "");
  EXPECT_EQ(found.run.cases[1].pairs.size(), 2U);
}

TEST_F(Measuring, CtrlCKeepsWhatWasMeasuredAndBeginsNothingMore) {
  now->answer = [&](const launch::WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.cut_short = by_ctrl_c(now->orders.size() == 2);
    return report;
  };
  const auto found = measure();
  EXPECT_TRUE(found.interrupted);
  ASSERT_EQ(found.run.cases.size(), 1U);
  EXPECT_EQ(found.run.cases[0].pairs.size(), 1U);
}

TEST_F(Measuring, NothingIsStartedInAStrangersFolder) {
  fs::create_directories(order.folder);
  write_text(order.folder + "/ab.json", "{}");
  EXPECT_THROW(measure(), ConfigError);
  EXPECT_TRUE(base->orders.empty());
}

}  // namespace
}  // namespace peakbench::ab
