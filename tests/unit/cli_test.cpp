// The program without processes: its words, its lines and its exit codes. tests/e2e has the rest.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "base/columns.h"
#include "base/errors.h"
#include "cli/option_values.h"
#include "cli/program.h"
#include "cli/progress.h"
#include "cli/rows.h"
#include "launch/devices.h"
#include "launch/run_folder.h"
#include "records/run.h"
#include "reports/trends/text.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::cli {
namespace {

using namespace peakbench::testing;
using records::Status;
using std::chrono::seconds;

TEST(Quantities, Sizes) {
  EXPECT_EQ(bytes_from("60GiB", "--memory-limit"), std::int64_t{60} << 30);
  EXPECT_EQ(bytes_from("800MiB", "--memory-limit"), std::int64_t{800} << 20);
  EXPECT_EQ(bytes_from("2097152", "--memory-limit"), 2097152);
  EXPECT_EQ(message_of<ConfigError>([] { bytes_from("12", "--memory-limit"); }),
            "--memory-limit \"12\": that is 12 bytes; the unit is missing, as in 12GiB");
  const auto message = message_of<ConfigError>([] { bytes_from("lots", "--memory-limit"); });
  EXPECT_NE(message.find("--memory-limit \"lots\": expected a size"), std::string::npos);
}

TEST(Quantities, CommasSeparateUnlessAValueHasOptions) {
  using Values = std::vector<std::string>;
  EXPECT_EQ(split_values({"a,b", "c"}, true, "--model"), (Values{"a", "b", "c"}));
  EXPECT_EQ(split_values({"lora,rank=4,alpha=2"}, true, "--strategy"),
            (Values{"lora,rank=4,alpha=2"}));
  EXPECT_EQ(positive_numbers({"1,2", "16"}, "--batch", 16), (std::vector<std::int64_t>{1, 2, 16}));
  EXPECT_EQ(positive_numbers({"2..4", "4k,1K"}, "--seq", 4096),
            (std::vector<std::int64_t>{2, 3, 4, 4096, 1024}));
  EXPECT_EQ(message_of<ConfigError>([] { positive_numbers({"1..5000"}, "--batch", 9999); }),
            "--batch: \"1..5000\" is no range of 1 to 1000 numbers, like 1..8");
  for (const char* bad : {"0", "-1", "1.5", "x", "1,,2", "", "17", "99999999999999999999", "1k",
                          "k", "1..", "..4", "4..1", "1..17", "1...4", "1..2..3"})
    EXPECT_THROW(positive_numbers({bad}, "--batch", 16), ConfigError) << bad;
}

TEST(Rows, DurationsAndLongNames) {
  EXPECT_EQ(duration(0), "0 s");
  EXPECT_EQ(duration(185), "3 min 05 s");
  EXPECT_EQ(duration(8040), "2 h 14 min");
  EXPECT_EQ(elided("short", 10), "short");
  EXPECT_EQ(elided("vit-l-16/baseline/cpu/fp32/b1", 15), "vit-l-...p32/b1");
  EXPECT_EQ(elided("vit-l-16/baseline", 5), "vit-l");
}

TEST(Rows, AFailedCaseGivesItsReason) {
  records::CaseResult result;
  result.spec.id = "m/s/cpu/fp32/b1";
  result.status = Status::kOutOfMemory;
  result.reason = "asked 9 GiB";
  EXPECT_EQ(case_row(2, 12, result), "[ 3/12] out_of_memory  m/s/cpu/fp32/b1\n    asked 9 GiB\n");
  EXPECT_EQ(case_row(2, 12, result, 37),
            "[ 3/12] out_of_memory\n    m/s/cpu/fp32/b1\n    asked 9 GiB\n");
}

TEST(Rows, ACaseOnACardSaysWhatItReservesAndWhatItTakesBeside) {
  records::CaseResult result;
  result.spec.id = "m/offload/cuda:0/fp32/b1";
  result.spec.device = "cuda:0";
  result.memory.emplace();
  result.memory->peak_allocated_bytes = std::int64_t{2} << 30;
  EXPECT_EQ(case_row(0, 1, result),
            "[1/1] ok             peak 2.000 GiB allocated  m/offload/cuda:0/fp32/b1\n");
  result.memory->peak_reserved_bytes = std::int64_t{3} << 30;
  result.memory->spaces["pinned"].peak_allocated_bytes = std::int64_t{5} << 30;
  EXPECT_EQ(case_row(0, 1, result),
            "[1/1] ok             peak 2.000 GiB allocated, 3.000 reserved, 5.000 GiB pinned host "
            "memory  m/offload/cuda:0/fp32/b1\n");
}

TEST(Tables, NarrowWindowsGetFewerColumns) {
  const std::vector<TableColumn> columns{
      {"name", 0}, {"figure", 0, true}, {"note", 5}, {"empty", 0}};
  const std::vector<std::vector<std::string>> rows{
      {"a-rather-long-name-indeed", "12", "a remark", ""}, {"b\x1b[31m", "3", "", ""}};
  EXPECT_EQ(table_text(columns, rows, 60),
            "name                       figure  note\n"
            "a-rather-long-name-indeed      12  a remark\n"
            "b\uFFFD[31m                          3\n");
  EXPECT_EQ(table_text(columns, rows, 30),
            "name                    figure\n"
            "a-rather-lo…ame-indeed      12\n"
            "b\uFFFD[31m                       3\n");
  for (const int width : {10, 20, 40}) {
    std::istringstream lines(table_text(columns, rows, width));
    for (std::string line; std::getline(lines, line);) EXPECT_FALSE(line.empty()) << width;
  }
}

// Points with these peaks; 0: the case failed.
std::vector<trends::TrendPoint> trend_of(const std::vector<std::int64_t>& peaks,
                                         const trends::RunRow& run) {
  std::vector<trends::TrendPoint> trend;
  for (const auto peak : peaks) {
    trends::Point point;
    point.status = peak == 0 ? "crashed" : "ok";
    if (peak != 0) point.allocated_bytes = peak;
    trend.push_back({point, &run, "", false});
  }
  return trend;
}

TEST(Trends, AreALineOfBlocks) {
  const trends::RunRow run;
  using trends::Metric;
  EXPECT_EQ(sparkline(trend_of({10, 20, 0, 80}, run), Metric::kAllocated), "▁▂ █");
  EXPECT_EQ(sparkline(trend_of({5, 5}, run), Metric::kAllocated), "▁▁");
  EXPECT_EQ(sparkline({}, Metric::kAllocated), "");
}

TEST(Trends, ChangesAreExactAndOnlyBetweenComparablePoints) {
  const trends::RunRow run;
  using trends::Metric;
  auto trend = trend_of({6'000'000'000, 6'000'000'512, 6'000'000'000, 0, 5}, run);
  EXPECT_EQ(change_text(trend, 0, Metric::kAllocated), "");
  EXPECT_EQ(change_text(trend, 1, Metric::kAllocated), "+512 B");
  EXPECT_EQ(change_text(trend, 2, Metric::kAllocated), "\u2212512 B");
  EXPECT_EQ(change_text(trend, 3, Metric::kAllocated), "");
  EXPECT_EQ(change_text(trend, 4, Metric::kAllocated), "");
  trend[1].break_reason = "LibTorch 1 → 2";
  EXPECT_EQ(change_text(trend, 1, Metric::kAllocated), "");
  const auto text = points_table({{}, trend}, Metric::kAllocated, 120);
  EXPECT_NE(text.find("LibTorch 1 → 2"), std::string::npos);
  EXPECT_NE(text.find("crashed"), std::string::npos);
}

Activity busy() {
  Activity activity;
  activity.turn.place = 2;
  activity.turn.case_id = "qwen2.5-0.5b,layers=4/lora,rank=16+checkpointing/cpu/fp32/b1/s256";
  activity.turn.round = 1;
  activity.turn.rounds = 3;
  activity.turn.memory_workers = 2;
  activity.turn.throughput_workers = 5;
  activity.count = 12;
  activity.progress = {.phase = "optimizer_step",
                       .step = 1,
                       .steps = 3,
                       .allocated_bytes = std::int64_t{1} << 30,
                       .peak_bytes = std::int64_t{2} << 30};
  activity.elapsed_s = 75;
  activity.remaining_s = 600;
  return activity;
}

TEST(StatusLines, WideHasEverything) {
  EXPECT_EQ(status_lines(busy(), 120),
            (std::vector<std::string>{
                "[ 3/12] qwen2.5-0.5b,layers=4/lora,rank=16+checkpointing/cpu/fp32/b1/s256",
                "memory worker, step 2/3 optimizer step, 1 min 15 s, about 10 min 00 s left, "
                "7 workers left, 1.000 GiB, peak 2.000 GiB"}));
}

TEST(StatusLines, NarrowKeepsWhatMatters) {
  EXPECT_EQ(status_lines(busy(), 60)[1],
            "step 2/3 optimizer step, 1 min 15 s, about 10 min 00 s left");
  EXPECT_EQ(status_lines(busy(), 40)[1], "step 2/3 optimizer step, 1 min 15 s");
  EXPECT_EQ(status_lines(busy(), 30)[1], "step 2/3 optimizer step");
  for (int width = 1; width < 150; ++width)
    for (const auto& line : status_lines(busy(), width))
      EXPECT_LT(line.size(), static_cast<std::size_t>(std::max(width, 11))) << width;
}

TEST(StatusLines, NarrowKeepsTheRound) {
  auto activity = busy();
  activity.turn.mode = records::JobMode::kThroughput;
  activity.progress = {.phase = "step", .step = 1, .steps = 4};
  EXPECT_EQ(status_lines(activity, 60)[1], "timing, round 2 of 3, step 2/4, 1 min 15 s");
  EXPECT_EQ(status_lines(activity, 40)[1], "timing, round 2 of 3, step 2/4");
  EXPECT_EQ(status_lines(activity, 24)[1], "step 2/4");
}

TEST(StatusLines, PhasesOutsideSteps) {
  auto activity = busy();
  activity.turn.mode = records::JobMode::kThroughput;
  activity.remaining_s = -1;
  activity.progress.peak_bytes = 0;
  const auto words = [&](const std::string& phase) {
    activity.progress.phase = phase;
    return status_lines(activity, 100)[1];
  };
  EXPECT_EQ(words(""), "timing, round 2 of 3, starting, 1 min 15 s, 7 workers left");
  EXPECT_EQ(words("build"), "timing, round 2 of 3, build, 1 min 15 s, 7 workers left");
  EXPECT_EQ(words("step"), "timing, round 2 of 3, step 2/3, 1 min 15 s, 7 workers left");
  EXPECT_EQ(words("warmup"), "timing, round 2 of 3, step 2/3 warmup, 1 min 15 s, 7 workers left");
}

class ProgressTest : public ::testing::Test {
 protected:
  std::unique_ptr<launch::RunListener> observer(bool live, bool quiet = false) {
    Screen screen;
    screen.live = live;
    return make_progress(out, err, screen, quiet, [this] { return now; });
  }
  static records::CaseResult done() {
    records::CaseResult result;
    result.spec.id = "m/a/cpu/fp32/b1";
    result.wall_ns = 1;
    return result;
  }
  static launch::Turn memory(const std::string& stack, std::size_t place,
                             std::size_t memory_workers, std::size_t throughput_workers) {
    launch::Turn turn;
    turn.place = place;
    turn.case_id = "m/" + stack + "/cpu/fp32/b1";
    turn.memory_workers = memory_workers;
    turn.throughput_workers = throughput_workers;
    return turn;
  }
  static launch::Turn timing(std::size_t place, std::int64_t round, std::size_t left) {
    auto turn = memory("a", place, 0, left);
    turn.mode = records::JobMode::kThroughput;
    turn.round = round;
    turn.rounds = 2;
    turn.group_size = 2;
    return turn;
  }

  std::ostringstream out, err;
  std::chrono::steady_clock::time_point now{seconds(1000)};
};

TEST_F(ProgressTest, PlainLinesComeAtStartsAndEveryHalfMinute) {
  const auto observer = this->observer(false);
  observer->run_started(2, 1);
  observer->worker_started(memory("a", 0, 2, 4));
  now += seconds(29);
  observer->tick();
  now += seconds(1);
  observer->worker_progress(0, {.phase = "build"});
  observer->case_ended(0, done());
  EXPECT_EQ(err.str(),
            "1 cases are kept, 2 to run\n[1/2] m/a/cpu/fp32/b1\n"
            "[1/2] m/a/cpu/fp32/b1, memory worker, build, 30 s, 6 workers left\n");
  EXPECT_EQ(out.str(), "[1/2] ok             m/a/cpu/fp32/b1\n");
}

TEST_F(ProgressTest, ARoundIsOnePlainLine) {
  const auto observer = this->observer(false);
  observer->run_started(2, 0);
  for (const std::int64_t round : {0, 1})
    for (const std::size_t place : {0u, 1u}) {
      observer->worker_started(
          timing(place, round, 4 - 2 * static_cast<std::size_t>(round) - place));
      observer->worker_ended(place);
    }
  EXPECT_EQ(err.str(),
            "timing, round 1 of 2: 2 cases in turn, 4 workers left\n"
            "timing, round 2 of 2: 2 cases in turn, 2 workers left\n");
}

// A memory worker took 40 s, a throughput worker 10 s: two of the one and three of the other.
TEST_F(ProgressTest, WhatRemainsIsEstimatedFromWhatRan) {
  const auto observer = this->observer(true);
  observer->run_started(3, 0);
  observer->worker_started(memory("a", 0, 1, 1));
  now += seconds(40);
  observer->worker_ended(0);
  observer->worker_started(memory("b", 1, 2, 3));
  now += seconds(5);
  observer->tick();
  EXPECT_NE(err.str().find("5 s, about 3 min 15 s left"), std::string::npos) << err.str();
  observer->worker_started(timing(0, 0, 3));
  now += seconds(10);
  observer->worker_ended(0);
  observer->worker_started(memory("b", 1, 2, 3));
  now += seconds(10);
  observer->tick();
  EXPECT_NE(err.str().find("10 s, about 1 min 40 s left"), std::string::npos) << err.str();
}

// Of four left, 20 s each, two run at once; the first of them has run for 10 s.
TEST_F(ProgressTest, OfSeveralAtWorkTheFirstIsShown) {
  const auto observer = this->observer(true);
  observer->run_started(5, 0);
  observer->worker_started(memory("a", 0, 5, 0));
  now += seconds(20);
  observer->worker_ended(0);
  observer->worker_started(memory("b", 1, 4, 0));
  observer->worker_started(memory("c", 2, 4, 0));
  observer->worker_progress(2, {.phase = "forward"});
  observer->worker_progress(1, {.phase = "build"});
  now += seconds(10);
  err.str("");
  observer->tick();
  EXPECT_NE(err.str().find("[2/5] m/b/cpu/fp32/b1\nmemory worker, build, 2 at work, 10 s, about 30 "
                           "s left, 4 workers left"),
            std::string::npos)
      << err.str();
  observer->worker_ended(1);
  now += seconds(1);
  observer->tick();
  EXPECT_NE(err.str().find("[3/5] m/c/cpu/fp32/b1\nmemory worker, forward, 11 s"),
            std::string::npos)
      << err.str();
}

TEST_F(ProgressTest, LinesOnATerminalAreTakenBack) {
  {
    const auto observer = this->observer(true);
    observer->run_started(1, 0);
    observer->worker_started(memory("a", 0, 1, 0));
    observer->tick();  // too soon to draw again
  }
  EXPECT_EQ(err.str(),
            "[1/1] m/a/cpu/fp32/b1\nmemory worker, starting, 0 s, 1 worker left\n\r\x1b[2A\x1b[J");
}

TEST_F(ProgressTest, QuietSaysNothing) {
  const auto observer = this->observer(true, true);
  observer->run_started(1, 1);
  observer->worker_started(memory("a", 0, 1, 0));
  observer->worker_ended(0);
  observer->case_ended(0, done());
  EXPECT_EQ(out.str() + err.str(), "");
}

class ProgramTest : public ::testing::Test {
 protected:
  // Hands the program a runner that the test keeps.
  class Lent : public launch::Runner {
   public:
    explicit Lent(launch::Runner& own) : own_(own) {}
    launch::WorkerReport run(const launch::WorkerOrder& order,
                             const launch::Listener& listener) override {
      return own_.run(order, listener);
    }

   private:
    launch::Runner& own_;
  };

  int run(std::vector<std::string> arguments) { return run(std::move(arguments), out); }
  int run(std::vector<std::string> arguments, std::ostream& to) {
    World world{to,
                err,
                Screen{},
                100,
                {scratch / "worker", PEAKBENCH_FAKE_PLUGINS, PEAKBENCH_TEMPLATES, ""},
                [this](const planning::Plan&) { return std::make_unique<Lent>(runner); }};
    return run_program(arguments, world);
  }
  int run_stack(const std::vector<std::string>& stacks) {
    std::vector<std::string> arguments{"run", "--model", "tiny", "--out", scratch / "out"};
    for (const auto& stack : stacks) arguments.insert(arguments.end(), {"--strategy", stack});
    return run(arguments);
  }
  void fail(const std::string& part) {
    runner.answer = [part](const launch::WorkerOrder& order) {
      auto report = FakeRunner::good(order);
      if (order.job.case_id.find(part) == std::string::npos) return report;
      report.result = {};
      report.result.status = Status::kCrashed;
      report.result.reason = "gone";
      return report;
    };
  }

  ScratchFolder scratch;
  FakeRunner runner;
  std::ostringstream out, err;
};

TEST_F(ProgramTest, DoneIsZeroWhateverTheOutcomes) {
  fail("slim");
  EXPECT_EQ(run_stack({"baseline", "slim", "slim+rival"}), kDone);
  EXPECT_NE(out.str().find("[2/3] crashed"), std::string::npos);
  EXPECT_NE(out.str().find("Report:"), std::string::npos);
}

TEST_F(ProgramTest, NoCaseEndedOkIsThree) {
  fail("tiny");
  EXPECT_EQ(run_stack({"baseline", "slim+rival"}), kEveryCaseFailed);
  EXPECT_TRUE(std::filesystem::exists(scratch / "out/report/index.html"));
}

TEST_F(ProgramTest, EveryCaseConflictingIsTwoAndStartsNothing) {
  EXPECT_EQ(run_stack({"slim+rival"}), kUnusableInput);
  EXPECT_TRUE(runner.orders.empty());
  EXPECT_FALSE(std::filesystem::exists(scratch / "out"));
}

TEST_F(ProgramTest, InterruptedIsOneHundredAndThirtyWithAReport) {
  runner.answer = [](const launch::WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.interrupted = order.job.case_id.find("slim") != std::string::npos;
    return report;
  };
  EXPECT_EQ(run_stack({"baseline", "slim"}), kInterrupted);
  EXPECT_NE(err.str().find("Interrupted: 0 of 2 cases are done"), std::string::npos);
  EXPECT_NE(out.str().find("[1/2] ok"), std::string::npos);  // its memory
  EXPECT_TRUE(std::filesystem::exists(scratch / "out/report/index.html"));
}

TEST_F(ProgramTest, TheFolderIsHeldUntilTheReportIsWritten) {
  // Told of every flush: the table goes out before the report is written.
  struct Watched : std::stringbuf {
    std::function<void()> flushed;
    int sync() override {
      flushed();
      return 0;
    }
  } buffer;
  std::vector<std::string> before_report;  // "held", or "free"
  buffer.flushed = [&] {
    if (std::filesystem::exists(scratch / "out/report/index.html")) return;
    try {
      const launch::RunFolder other(scratch / "out");
      before_report.emplace_back("free");
    } catch (const ConfigError&) {
      before_report.emplace_back("held");
    }
  };
  std::ostream watched(&buffer);
  EXPECT_EQ(
      run({"run", "--model", "tiny", "--strategy", "baseline", "--out", scratch / "out"}, watched),
      kDone);
  EXPECT_EQ(before_report, (std::vector<std::string>{"held", "held"}));  // the row, the table
}

TEST_F(ProgramTest, AnInternalErrorIsOne) {
  runner.answer = [](const launch::WorkerOrder&) -> launch::WorkerReport {
    throw std::logic_error("a bug");
  };
  EXPECT_EQ(run_stack({"baseline"}), kInternalError);
  EXPECT_NE(err.str().find("internal error: a bug"), std::string::npos);
}

TEST_F(ProgramTest, WhatTheWorkerIsTold) {
  EXPECT_EQ(run({"run",
                 "--model",
                 "tiny,layers=3",
                 "--strategy",
                 "baseline",
                 "--strategy",
                 "slim,rank=4",
                 "--dtype",
                 "bf16",
                 "--batch",
                 "2",
                 "--seed",
                 "5",
                 "--steps",
                 "4",
                 "--warmup",
                 "0",
                 "--threads",
                 "2",
                 "--timeout",
                 "60",
                 "--memory-limit",
                 "1GiB",
                 "--repetitions",
                 "0",
                 "--no-report",
                 "--quiet",
                 "--out",
                 scratch / "out"}),
            kDone);
  ASSERT_EQ(runner.orders.size(), 2u);  // no repetition: memory only
  const auto& order = runner.orders[1];
  EXPECT_EQ(order.job.case_id, "tiny,layers=3/slim,rank=4/cpu/bf16/b2");
  EXPECT_EQ(order.job.model_plugin.options.at("layers"), 3);
  ASSERT_EQ(order.job.strategy_plugins.size(), 2u);
  EXPECT_EQ(order.job.strategy_plugins[1].options.at("rank"), 4);
  EXPECT_EQ(order.job.seed, 5u);
  EXPECT_EQ(order.job.steps, 4);
  EXPECT_EQ(order.job.threads, 2);
  EXPECT_EQ(order.job.memory_limit_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(order.timeout, seconds(60));
  const auto run = records::read_run(scratch / "out");
  EXPECT_EQ(run.cases[0].throughput_reason, "not asked for (--repetitions 0)");
  EXPECT_EQ(out.str() + err.str(), "");
}

TEST(Driver, IsReadFromItsOwnLineAndComparedWithLibTorchs) {
  const std::string line =
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024";
  EXPECT_EQ(launch::driver_for(line, "13.0").version, "550.54.14");
  EXPECT_NE(launch::driver_for(line, "13.0").problem.find("needs a driver of branch 580 or later"),
            std::string::npos);
  EXPECT_EQ(launch::driver_for(line, "12.8").problem, "");
  const std::string open =
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build";
  EXPECT_EQ(launch::driver_for(open, "13.0").version, "580.95.05");
  EXPECT_EQ(launch::driver_for(open, "13.0").problem, "");
  EXPECT_EQ(launch::driver_for("", "13.0").version + launch::driver_for("", "13.0").problem, "");
}

TEST_F(ProgramTest, TheReportCannotBeWritten) {
  std::filesystem::create_directories(scratch / "templates/html");
  write_text(scratch / "templates/html/index.html.mustache", "{{no_such_field}}");
  EXPECT_EQ(run({"run", "--model", "tiny", "--strategy", "baseline", "--templates",
                 scratch / "templates", "--out", scratch / "out"}),
            kUnusableInput);
  EXPECT_NE(err.str().find("the report could not be written"), std::string::npos) << err.str();
  EXPECT_NE(err.str().find("out/run.json"), std::string::npos);
}

TEST_F(ProgramTest, WhatIsWrongWithTheReportIsSaidBeforeTheWorkWhereItIsKnown) {
  write_text(scratch / "templates", "no folder");
  EXPECT_EQ(run({"run", "--model", "tiny", "--strategy", "baseline", "--templates",
                 scratch / "templates", "--out", scratch / "out"}),
            kUnusableInput);
  EXPECT_NE(err.str().find("no such folder"), std::string::npos) << err.str();
  EXPECT_FALSE(std::filesystem::exists(scratch / "out"));
}

}  // namespace
}  // namespace peakbench::cli
