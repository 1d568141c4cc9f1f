// From a plan to run.json with a runner that starts nothing; launch_process_test.cpp has the
// processes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/errors.h"
#include "launch/case.h"
#include "launch/equivalence_check.h"
#include "launch/machine.h"
#include "launch/rounds.h"
#include "launch/run_folder.h"
#include "launch/session.h"
#include "launch/worker_environment.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;
using records::JobMode;
using records::Status;
using namespace peakbench::testing;

class Silent : public RunListener {
 public:
  void run_started(std::size_t to_run, std::size_t kept_cases) override {
    started = to_run;
    kept = kept_cases;
  }
  void worker_started(const Turn& turn) override { turns.push_back(turn); }
  void worker_progress(std::size_t, const records::Progress&) override { ++progress; }
  void warning(const std::string& text) override { warnings.push_back(text); }
  void case_ended(std::size_t place, const records::CaseResult&) override {
    ended.push_back(place);
  }
  std::size_t started = 0, kept = 0, progress = 0;
  std::vector<Turn> turns;
  std::vector<std::size_t> ended;
  std::vector<std::string> warnings;
};

class SessionTest : public ::testing::Test {
 protected:
  records::Run run(const planning::Plan& plan) { return run(plan, options()); }
  records::Run run(const planning::Plan& plan, const SessionOptions& options) {
    const RunFolder folder(scratch / "run");
    return run_plan(plan, folder, options, runner, observer);
  }
  using Workers = std::vector<std::string>;
  // "m lora": a memory worker of the stack; "t lora": a throughput worker.
  Workers workers() const {
    Workers found;
    for (const auto& order : runner.orders) {
      const auto begin = order.job.case_id.find('/') + 1;
      found.push_back((order.job.mode == JobMode::kMemory ? "m " : "t ") +
                      order.job.case_id.substr(begin, order.job.case_id.find('/', begin) - begin));
    }
    return found;
  }
  SessionOptions options() const {
    SessionOptions options;
    options.resume = resume;
    options.overwrite = overwrite;
    options.command = {"peakbench", "run"};
    return options;
  }

  ScratchFolder scratch;
  FakeRunner runner;
  Silent observer;
  bool resume = false, overwrite = false;
};

WorkerReport failure(Status status, const std::string& reason) {
  WorkerReport report;
  report.result.status = status;
  report.result.reason = reason;
  return report;
}

TEST_F(SessionTest, EveryCaseHasAMemoryAndAThroughputWorker) {
  const auto run = this->run(plan_of({planned_case("m", "baseline"), planned_case("m", "lora")}));
  EXPECT_EQ(workers(), (Workers{"m baseline", "m lora", "t baseline", "t lora"}));
  EXPECT_EQ(runner.orders[0].job.warmup, 0);  // the peak is over the first steps
  EXPECT_EQ(runner.orders[2].job.warmup, 1);
  EXPECT_TRUE(runner.orders[2].job.trace_path.empty());
  ASSERT_EQ(run.cases.size(), 2u);
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.cases[0].memory->worker_peak_rss_bytes, 777);
  EXPECT_EQ(run.cases[0].throughput->step_times_ns.size(), 3u);
  EXPECT_EQ(run.cases[0].wall_ns, 2'000'000);
  const auto written = records::read_run(scratch / "run");
  EXPECT_EQ(written.cases.size(), 2u);
  EXPECT_TRUE(written.pending.empty());
  EXPECT_FALSE(written.environment.at("cpu").get<std::string>().empty());
}

TEST_F(SessionTest, ResultsAreWrittenAsEachWorkerEnds) {
  std::vector<std::string> on_disk;  // rounds of each case
  runner.answer = [&](const WorkerOrder& order) {
    const auto written = records::read_run(scratch / "run");
    EXPECT_EQ(written.status, "running");
    EXPECT_EQ(written.pending.size(), on_disk.size() < 5 ? 2u : 1u);
    std::string text;
    for (const auto& one : written.cases)
      text += std::to_string(one.throughput ? one.throughput->rounds.size() : 0);
    on_disk.push_back(text);
    return FakeRunner::good(order);
  };
  auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "lora")});
  plan.request.repetitions = 2;
  const auto run = this->run(plan);
  EXPECT_EQ(on_disk, (std::vector<std::string>{"", "0", "00", "10", "11", "12"}));
  EXPECT_TRUE(run.pending.empty());
}

TEST_F(SessionTest, ADecidedCaseIsARowAndStartsNothing) {
  auto conflicting = planned_case("m", "a+b");
  conflicting.decided = Status::kConflict;
  conflicting.reason = "a and b both fill adapters";
  const auto run = this->run(plan_of({planned_case("m", "baseline"), conflicting}));
  EXPECT_EQ(runner.orders.size(), 2u);
  EXPECT_EQ(run.cases[1].status, Status::kConflict);
  EXPECT_EQ(run.cases[1].reason, "a and b both fill adapters");
}

TEST_F(SessionTest, AFailedCaseDoesNotEndTheRun) {
  runner.answer = [](const WorkerOrder& order) {
    return order.job.case_id.find("bad") != std::string::npos
               ? failure(Status::kCrashed, "killed by SIGSEGV")
               : FakeRunner::good(order);
  };
  const auto run = this->run(plan_of({planned_case("m", "bad"), planned_case("m", "good")}));
  EXPECT_EQ(run.cases[0].status, Status::kCrashed);
  EXPECT_EQ(run.cases[0].throughput_reason, "the memory worker ended crashed");
  EXPECT_EQ(run.cases[1].status, Status::kOk);
  EXPECT_EQ(runner.orders.size(), 3u);  // no throughput worker for the one that crashed
}

TEST_F(SessionTest, AFailedThroughputWorkerKeepsTheMemory) {
  runner.answer = [](const WorkerOrder& order) {
    return order.job.mode == JobMode::kThroughput ? failure(Status::kTimeout, "too long")
                                                  : FakeRunner::good(order);
  };
  const auto run = this->run(plan_of({planned_case("m", "baseline")}));
  EXPECT_EQ(run.cases[0].status, Status::kTimeout);
  EXPECT_TRUE(run.cases[0].memory.has_value());
  EXPECT_EQ(run.cases[0].reason, "in the throughput worker (memory was measured): too long");
}

TEST_F(SessionTest, AnEmulatedCardHasNoThroughputWorker) {
  const auto run = this->run(plan_of({planned_case("m", "baseline", "emulated:h100-80gb")}));
  EXPECT_EQ(runner.orders.size(), 1u);
  EXPECT_FALSE(run.cases[0].throughput.has_value());
  EXPECT_EQ(run.cases[0].throughput_reason, "an emulated card computes nothing: it has no times");
}

TEST_F(SessionTest, CasesOfAGroupTakeTurnsRoundAfterRound) {
  auto plan = plan_of({planned_case("m", "baseline"), planned_case("other", "baseline"),
                       planned_case("m", "x"), planned_case("m", "y")});
  plan.request.repetitions = 3;
  const auto run = this->run(plan);
  EXPECT_EQ(workers(), (Workers{"m baseline", "m x", "m y",  // the memory of a group
                                "t baseline", "t x", "t y",  // round 1
                                "t y", "t x", "t baseline",  // round 2: backwards
                                "t x", "t y", "t baseline",  // round 3: begins one further
                                "m baseline",                // the next group
                                "t baseline", "t baseline", "t baseline"}));
  std::vector<std::int64_t> places;
  for (const auto& round : run.cases[0].throughput->rounds) {
    EXPECT_EQ(round.round, static_cast<std::int64_t>(places.size()));
    EXPECT_EQ(round.step_times_ns, (std::vector<std::int64_t>{4, 2, 3}));
    EXPECT_EQ(round.other_busy_cores, 0.25);
    places.push_back(round.place);
  }
  EXPECT_EQ(places, (std::vector<std::int64_t>{0, 2, 2}));
  EXPECT_EQ(run.cases[0].wall_ns, 4'000'000);
  EXPECT_EQ(observer.ended, (std::vector<std::size_t>{0, 1, 2, 3}));  // rows in order
}

TEST_F(SessionTest, TheObserverHearsWhichRoundAndHowManyWorkersAreLeft) {
  auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  plan.request.repetitions = 2;
  run(plan);
  std::vector<std::string> told;
  for (const auto& turn : observer.turns)
    told.push_back(fmt::format("{} {}/{} of {}: {}+{}", turn.place, turn.round, turn.rounds,
                               turn.group_size, turn.memory_workers, turn.throughput_workers));
  EXPECT_EQ(told,
            (std::vector<std::string>{"0 0/2 of 0: 2+4", "1 0/2 of 0: 1+4", "0 0/2 of 2: 0+4",
                                      "1 0/2 of 2: 0+3", "1 1/2 of 2: 0+2", "0 1/2 of 2: 0+1"}));
}

TEST_F(SessionTest, AFailingRoundTakesNothingFromOthers) {
  int timed = 0;
  runner.answer = [&](const WorkerOrder& order) {
    const bool it = order.job.mode == JobMode::kThroughput &&
                    order.job.case_id.find("/x/") != std::string::npos;
    return it && ++timed == 2 ? failure(Status::kCrashed, "gone") : FakeRunner::good(order);
  };
  auto plan =
      plan_of({planned_case("m", "baseline"), planned_case("m", "x"), planned_case("m", "y")});
  plan.request.repetitions = 3;
  const auto run = this->run(plan);
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.cases[1].status, Status::kCrashed);
  EXPECT_EQ(run.cases[1].reason,
            "in the throughput worker of round 2 of 3 (memory was measured): gone");
  EXPECT_EQ(run.cases[1].throughput->rounds.size(), 1u);  // what it had
  for (const std::size_t other : {0u, 2u}) {
    EXPECT_EQ(run.cases[other].status, Status::kOk);
    EXPECT_EQ(run.cases[other].throughput->rounds.size(), 3u);
  }
  EXPECT_EQ(runner.orders.size(), 3u + 8u);  // no third round of it
  EXPECT_EQ(observer.ended, (std::vector<std::size_t>{1, 0, 2}));
}

TEST_F(SessionTest, AWorkerThatTimesNoStepIsNotAskedAgain) {
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.result.throughput.reset();
    return report;
  };
  auto plan = plan_of({planned_case("m", "baseline")});
  plan.request.repetitions = 3;
  const auto run = this->run(plan);
  EXPECT_EQ(runner.orders.size(), 2u);
  EXPECT_EQ(run.cases[0].throughput_reason, "the worker timed no step");
  EXPECT_EQ(run.status, "complete");
}

TEST_F(SessionTest, InterruptedInARoundOnlyTheMissingRoundsAreRunAgain) {
  auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  plan.request.repetitions = 3;
  runner.answer = [&](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.interrupted = runner.orders.size() == 6;  // in round 2, the reference's turn
    return report;
  };
  auto run = this->run(plan);
  EXPECT_EQ(run.status, "interrupted");
  EXPECT_EQ(run.pending.size(), 2u);
  EXPECT_EQ(run.cases[0].throughput->rounds.size(), 1u);
  EXPECT_EQ(run.cases[1].throughput->rounds.size(), 2u);
  EXPECT_EQ(run.cases[0].throughput->step_times_ns.size(), 3u);

  runner.answer = nullptr;
  runner.orders.clear();
  resume = true;
  run = this->run(plan);
  EXPECT_EQ(workers(), (Workers{"t baseline", "t x", "t baseline"}));
  EXPECT_EQ(run.status, "complete");
  for (const auto& one : run.cases) {
    ASSERT_EQ(one.throughput->rounds.size(), 3u);
    for (std::int64_t round = 0; round < 3; ++round)
      EXPECT_EQ(one.throughput->rounds[static_cast<std::size_t>(round)].round, round);
    EXPECT_EQ(one.throughput->step_ns.count, 9);
  }
}

// The stack's own plugin is this file.
planning::PlannedCase case_with(const std::string& stack, const std::string& plugin) {
  auto planned = planned_case("m", stack);
  planned.strategies.back().path = plugin;
  return planned;
}

// A linker writes a new file and gives it the name.
void build(const std::string& plugin, const std::string& content) {
  write_text(plugin + ".new", content);
  fs::rename(plugin + ".new", plugin);
}

TEST_F(SessionTest, AHashIsThatOfTheFilesBytes) {
  const auto file = scratch / "x.so";
  build(file, "abc");  // the example of FIPS 180-2
  const auto run = this->run(plan_of({case_with("x", file)}));
  ASSERT_EQ(run.cases[0].plugins.size(), 1u);
  EXPECT_EQ(
      run.cases[0].plugins[0],
      (records::PluginBuild{"strategy", "x", "x.so",
                            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}));
}

TEST_F(SessionTest, APluginBuiltAnewIsMeasuredAgainAndItsReferenceForIt) {
  const auto x = scratch / "x.so", y = scratch / "y.so";
  build(x, "one");
  build(y, "one");
  const auto plan = plan_of({planned_case("m", "baseline"), case_with("x", x), case_with("y", y)});
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    if (!order.job.read_parameters_path.empty()) {
      report.result.equivalence.emplace().verdict = "held";
    }
    if (const auto& path = order.job.write_parameters_path; !path.empty())
      write_text(path, "parameters");
    return report;
  };
  run(plan);
  build(x, "two");
  runner.orders.clear();
  resume = true;
  const auto run = this->run(plan);
  EXPECT_EQ(workers(), (Workers{"m baseline", "m x", "t x"})) << "the reference keeps its rounds";
  EXPECT_FALSE(runner.orders[1].job.read_parameters_path.empty());
  EXPECT_EQ(observer.warnings,
            (std::vector<std::string>{"1 case is measured again: x.so is another build (sha256 "
                                      "7692c3ad3540 then, 3fc4ccfe7458 now)"}));
  for (const auto& one : run.cases) EXPECT_TRUE(one.throughput) << one.spec.id;
}

TEST_F(SessionTest, APluginReplacedUnderACaseMakesItNotMeasured) {
  const auto x = scratch / "x.so";
  build(x, "one");
  auto replaces = JobMode::kMemory;
  runner.answer = [&](const WorkerOrder& order) {
    if (order.job.mode == replaces) build(x, "two");
    return FakeRunner::good(order);
  };
  const auto plan = plan_of({case_with("x", x)});
  auto run = this->run(plan);
  EXPECT_EQ(run.cases[0].status, Status::kHostFailure);
  EXPECT_EQ(run.cases[0].reason,
            "a plugin was replaced while the case ran: x.so is another build (sha256 7692c3ad3540 "
            "then, 3fc4ccfe7458 now)");
  build(x, "one");
  replaces = JobMode::kThroughput;
  overwrite = true;
  run = this->run(plan);
  EXPECT_EQ(run.cases[0].status, Status::kOk);
  EXPECT_FALSE(run.cases[0].throughput) << "times of one build beside memory of another";
  EXPECT_TRUE(run.cases[0].throughput_reason.starts_with("a plugin was replaced"));
}

TEST_F(SessionTest, TheEnvironmentIsACasesOwn) {
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    const bool first = order.job.device == "cuda:0";
    report.result.environment = {{"card", first ? "A" : "B"}, {"driver", 580}};
    return report;
  };
  const auto run = this->run(
      plan_of({planned_case("m", "baseline", "cuda:0"), planned_case("m", "baseline", "cuda:1")}));
  EXPECT_EQ(run.cases[0].environment.at("card"), "A");
  EXPECT_EQ(run.cases[1].environment.at("card"), "B");
  EXPECT_FALSE(run.environment.contains("card"));  // of neither alone
  EXPECT_EQ(run.environment.at("driver"), 580);
  EXPECT_TRUE(run.environment.contains("kernel"));
}

TEST_F(SessionTest, RepetitionsAreCombined) {
  auto plan = plan_of({planned_case("m", "baseline")});
  plan.request.repetitions = 3;
  const auto run = this->run(plan);
  EXPECT_EQ(runner.orders.size(), 4u);
  EXPECT_EQ(run.cases[0].throughput->step_ns.count, 9);
  EXPECT_EQ(run.cases[0].throughput->step_ns.min, 2);
  EXPECT_EQ(run.cases[0].throughput->step_ns.median, 3);
  EXPECT_EQ(run.cases[0].throughput->step_ns.p90, 4);
}

TEST_F(SessionTest, TheReferenceRunsFirstAndLeavesItsCheckpoint) {
  // In plan order the baseline comes last; a second model's cases stand between.
  const auto plan = plan_of({planned_case("m", "lora"), planned_case("other", "baseline"),
                             planned_case("m", "checkpointing"), planned_case("m", "baseline")});
  std::string file;
  runner.answer = [&](const WorkerOrder& order) {
    if (!order.job.write_parameters_path.empty()) {
      file = order.job.write_parameters_path;
      write_text(file, "parameters");
    }
    const bool of_group = order.job.case_id.rfind("m/", 0) == 0;
    EXPECT_EQ(fs::exists(file), of_group && order.job.mode == JobMode::kMemory);
    return FakeRunner::good(order);
  };
  const auto run = this->run(plan);
  EXPECT_EQ(workers(), (Workers{"m baseline", "m lora", "m checkpointing", "t baseline", "t lora",
                                "t checkpointing", "m baseline", "t baseline"}));
  EXPECT_EQ(run.cases[0].spec.id, "m/lora/cpu/fp32/b1");  // rows stay in plan order
  EXPECT_EQ(runner.orders[1].job.read_parameters_path, file);
  EXPECT_EQ(runner.orders[1].job.promise.reference_case, "m/baseline/cpu/fp32/b1");
  EXPECT_FALSE(fs::exists(file));                                   // no later case needs it
  EXPECT_TRUE(runner.orders[6].job.write_parameters_path.empty());  // `other` has nobody to compare
}

TEST_F(SessionTest, EachReferenceLeavesItsCheckpointToThoseHeldAgainstIt) {
  auto lora = planned_case("m", "lora", "cpu", "lora");
  lora.promise.promise = "different_problem";
  auto left_out = planned_case("m", "dora+checkpointing", "cpu", "dora");
  left_out.promise.tolerance = 1e-3;
  left_out.promise.relative_tolerance = 1e-2;
  left_out.promise.different_problem = true;
  const auto plan = plan_of({planned_case("m", "lora+checkpointing", "cpu", "lora"),
                             planned_case("m", "foreach-off"), lora, left_out,
                             planned_case("m", "lora+foreach-off", "cpu", "lora"),
                             planned_case("m", "baseline")});
  struct Memory {
    std::string id, write, read;
    std::vector<std::string> on_disk;
  };
  std::vector<Memory> seen;
  const auto name_of = [](const std::string& path) {
    return path.empty() ? "" : fs::path(path).parent_path().filename().string();
  };
  runner.answer = [&](const WorkerOrder& order) {
    if (order.job.mode != JobMode::kMemory) return FakeRunner::good(order);
    if (const auto& path = order.job.write_parameters_path; !path.empty()) write_text(path, "x");
    Memory one{order.job.case_id,
               name_of(order.job.write_parameters_path),
               name_of(order.job.read_parameters_path),
               {}};
    for (const auto& entry : fs::recursive_directory_iterator(scratch / "run"))
      if (entry.path().filename() == "parameters.tmp") one.on_disk.push_back(name_of(entry.path()));
    seen.push_back(one);
    return FakeRunner::good(order);
  };
  const auto run = this->run(plan);
  const std::vector<Memory> expected{
      {"m/lora/cpu/fp32/b1", "m-lora", "", {"m-lora"}},
      {"m/lora+checkpointing/cpu/fp32/b1", "", "m-lora", {"m-lora"}},
      {"m/lora+foreach-off/cpu/fp32/b1", "", "m-lora", {"m-lora"}},
      {"m/baseline/cpu/fp32/b1", "m-baseline", "", {"m-baseline"}},
      {"m/foreach-off/cpu/fp32/b1", "", "m-baseline", {"m-baseline"}},
      {"m/dora+checkpointing/cpu/fp32/b1", "", "", {}}};
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].id, expected[i].id);
    EXPECT_EQ(seen[i].write, expected[i].write) << seen[i].id;
    EXPECT_EQ(seen[i].read, expected[i].read) << seen[i].id;
    EXPECT_EQ(seen[i].on_disk, expected[i].on_disk) << seen[i].id;
  }
  const auto equivalence = [&](std::size_t index) { return *run.cases[index].equivalence; };
  EXPECT_EQ(equivalence(0).reference_case, "m/lora/cpu/fp32/b1");
  EXPECT_EQ(equivalence(1).reference_case, "m/baseline/cpu/fp32/b1");
  EXPECT_EQ(equivalence(2).reference_case, "");
  EXPECT_EQ(equivalence(2).reason, "the strategy changes what is trained");
  EXPECT_EQ(equivalence(3).reference_case, "");
  EXPECT_EQ(equivalence(3).reason, "the run has no case dora to compare with");
  EXPECT_EQ(equivalence(3).tolerance, 1e-3);
  EXPECT_EQ(equivalence(3).relative_tolerance, 1e-2);
  EXPECT_TRUE(equivalence(3).different_problem);
  EXPECT_FALSE(equivalence(1).different_problem);
  EXPECT_EQ(equivalence(5).reason, "this case is the reference");
}

// Killed in between, the run would check the case again, and find nothing to hold it against.
TEST_F(SessionTest, TheParametersStayUntilTheResultIsWritten) {
  const auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "lora")});
  const auto record = scratch / "run/run.json", aside = scratch / "aside.json";
  std::string file;
  runner.answer = [&](const WorkerOrder& order) {
    if (const auto& path = order.job.write_parameters_path; !path.empty()) {
      file = path;
      write_text(file, "parameters");
    } else if (!resume) {
      fs::rename(record, aside);  // run.json cannot be written any more
      fs::create_directory(record);
    }
    return FakeRunner::good(order);
  };
  EXPECT_THROW(run(plan), HostError);
  EXPECT_TRUE(fs::exists(file));
  fs::remove(record);
  fs::rename(aside, record);
  runner.orders.clear();
  resume = true;
  run(plan);
  EXPECT_EQ(runner.orders[0].job.read_parameters_path, file);
  EXPECT_FALSE(fs::exists(file));

  write_text(file, "parameters");  // killed just before it was removed
  run(plan);
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(SessionTest, AFailedReferenceIsNotComparedWith) {
  runner.answer = [](const WorkerOrder& order) {
    return order.job.case_id.find("baseline") != std::string::npos
               ? failure(Status::kOutOfMemory, "too large")
               : FakeRunner::good(order);
  };
  const auto run = this->run(plan_of({planned_case("m", "baseline"), planned_case("m", "x")}));
  EXPECT_EQ(run.cases[1].equivalence->verdict, "not_checked");
  EXPECT_EQ(run.cases[1].equivalence->reason, "the reference case ended out_of_memory");
}

TEST_F(SessionTest, WithoutDiskTheCheckIsSkippedWithItsReason) {
  auto options = this->options();
  options.parameters = [](const std::string&) { return std::int64_t{1} << 60; };
  const auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  const auto run = this->run(plan, options);
  EXPECT_TRUE(runner.orders[0].job.write_parameters_path.empty());
  EXPECT_NE(run.cases[1].equivalence->reason.find("GiB of disk"), std::string::npos);
}

TEST_F(SessionTest, InterruptedInTheMemoryWorkerTheCaseStaysPending) {
  const auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.interrupted = order.job.case_id.find("/x/") != std::string::npos;
    return report;
  };
  auto run = this->run(plan);
  EXPECT_EQ(run.status, "interrupted");
  ASSERT_EQ(run.cases.size(), 1u);
  EXPECT_EQ(run.cases[0].throughput_reason, "interrupted before the throughput was measured");
  EXPECT_EQ(run.pending, (std::vector<std::string>{"m/baseline/cpu/fp32/b1", "m/x/cpu/fp32/b1"}));

  runner.answer = nullptr;
  runner.orders.clear();
  resume = true;
  run = this->run(plan);
  EXPECT_EQ(observer.kept, 0u);
  EXPECT_EQ(workers(), (Workers{"m x", "t baseline", "t x"}));
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.cases.size(), 2u);
}

TEST_F(SessionTest, InterruptedInTheThroughputWorkerTheMemoryIsKept) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  runner.answer = [](const WorkerOrder& order) {
    auto report = FakeRunner::good(order);
    report.interrupted = order.job.mode == JobMode::kThroughput;
    return report;
  };
  auto run = this->run(plan);
  EXPECT_EQ(run.status, "interrupted");
  ASSERT_EQ(run.cases.size(), 1u);
  EXPECT_TRUE(run.cases[0].memory.has_value());
  EXPECT_EQ(run.pending.size(), 1u);

  runner.answer = nullptr;
  runner.orders.clear();
  resume = true;
  run = this->run(plan);
  ASSERT_EQ(runner.orders.size(), 1u);
  EXPECT_EQ(runner.orders[0].job.mode, JobMode::kThroughput);
  EXPECT_TRUE(run.cases[0].throughput.has_value());
  EXPECT_EQ(run.cases[0].throughput_reason, "");
  EXPECT_TRUE(run.pending.empty());
}

TEST_F(SessionTest, InterruptedWhileWhatIsNeededIsFoundTheCaseStaysPending) {
  const auto plan = plan_of({planned_case("m", "baseline", "emulated:h100-80gb")});
  runner.answer = [&](const WorkerOrder& order) {
    auto report = failure(Status::kOutOfMemory, "too large");
    report.result.out_of_memory.emplace();
    report.interrupted = order.job.trace_path.empty();  // the second worker
    return report;
  };
  auto run = this->run(plan);
  EXPECT_EQ(runner.orders.size(), 2u);
  EXPECT_EQ(run.status, "interrupted");
  EXPECT_TRUE(run.cases.empty());
  EXPECT_EQ(run.pending, (std::vector<std::string>{"m/baseline/emulated:h100-80gb/fp32/b1"}));

  resume = true;
  runner.answer = [&](const WorkerOrder& order) {
    if (order.job.trace_path.empty()) return FakeRunner::good(order);
    auto report = failure(Status::kOutOfMemory, "too large");
    report.result.out_of_memory.emplace();
    return report;
  };
  run = this->run(plan);
  ASSERT_EQ(run.cases.size(), 1u);
  EXPECT_EQ(run.cases[0].status, Status::kOutOfMemory);
  EXPECT_TRUE(run.cases[0].out_of_memory->needed_bytes.has_value());
}

TEST_F(SessionTest, TheMachineFailedWhileWhatIsNeededWasFound) {
  runner.answer = [&](const WorkerOrder& order) {
    if (order.job.trace_path.empty()) return failure(Status::kHostFailure, "no memory");
    auto report = failure(Status::kOutOfMemory, "too large");
    report.result.out_of_memory.emplace();
    return report;
  };
  const auto run = this->run(plan_of({planned_case("m", "baseline", "emulated:h100-80gb")}));
  EXPECT_EQ(run.cases[0].status, Status::kHostFailure);
  EXPECT_FALSE(run.cases[0].out_of_memory.has_value());
  EXPECT_EQ(run.cases[0].reason,
            "while the memory was looked for that the case would need: no memory");
}

TEST_F(SessionTest, WhatTheMachineFailedAloneIsRunAgain) {
  const auto plan =
      plan_of({planned_case("m", "baseline"), planned_case("m", "x"), planned_case("m", "y")});
  runner.answer = [](const WorkerOrder& order) {
    const bool memory = order.job.mode == JobMode::kMemory;
    const bool of_x = order.job.case_id.find("/x/") != std::string::npos;
    const bool of_y = order.job.case_id.find("/y/") != std::string::npos;
    return (of_x && memory) || (of_y && !memory) ? failure(Status::kHostFailure, "full")
                                                 : FakeRunner::good(order);
  };
  auto run = this->run(plan);
  EXPECT_EQ(run.status, "complete");
  EXPECT_EQ(run.cases[1].status, Status::kHostFailure);
  EXPECT_EQ(run.cases[1].reason, "full");
  EXPECT_FALSE(run.cases[1].equivalence.has_value());
  EXPECT_EQ(run.cases[2].status, Status::kHostFailure);
  EXPECT_TRUE(run.cases[2].memory.has_value());

  runner.answer = nullptr;
  runner.orders.clear();
  resume = true;
  run = this->run(plan);
  EXPECT_EQ(workers(), (Workers{"m x", "t x", "t y"}));
  for (const auto& one : run.cases) {
    EXPECT_EQ(one.status, Status::kOk);
    EXPECT_EQ(one.reason, "");
    EXPECT_EQ(one.throughput_reason, "");
  }
}

// What was measured of the others meanwhile is never out of run.json.
TEST_F(SessionTest, PromisesAreCheckedWhenTheReferenceIsThere) {
  const auto plan = plan_of({planned_case("m", "baseline"), planned_case("m", "x")});
  const auto unless_reference = [](const WorkerReport& report) {
    return [report](const WorkerOrder& order) {
      return order.job.case_id.find("baseline") != std::string::npos ? report
                                                                     : FakeRunner::good(order);
    };
  };
  runner.answer = unless_reference(failure(Status::kHostFailure, "full"));
  auto run = this->run(plan);
  EXPECT_EQ(run.cases[1].equivalence->verdict, "not_checked");
  EXPECT_EQ(run.cases[1].equivalence->reason,
            "the machine failed the reference case: --resume runs it again and checks this");
  const auto times = run.cases[1].throughput->step_times_ns;

  resume = true;
  WorkerReport stopped;
  stopped.interrupted = true;
  runner.answer = unless_reference(stopped);
  run = this->run(plan);
  EXPECT_EQ(run.status, "interrupted");
  ASSERT_EQ(run.cases.size(), 1u);
  EXPECT_EQ(run.cases[0].throughput->step_times_ns, times);

  runner.answer = nullptr;
  runner.orders.clear();
  run = this->run(plan);
  EXPECT_EQ(workers(), (Workers{"m baseline", "m x", "t baseline"}));
  EXPECT_EQ(runner.orders[0].job.write_parameters_path.empty(), false);
  EXPECT_EQ(run.cases[1].throughput->rounds.size(), 1u);
  EXPECT_EQ(run.cases[1].throughput->step_times_ns, times);
  EXPECT_EQ(run.status, "complete");
}

TEST_F(SessionTest, ARunWithOtherDeviceOptionsIsNotResumed) {
  auto planned = planned_case("m", "baseline", "cuda:0");
  planned.spec.device_options = {{"cudnn", false}};
  run(plan_of({planned}));
  resume = true;
  EXPECT_NO_THROW(run(plan_of({planned})));
  planned.spec.device_options = {{"cudnn", true}};
  const auto message = message_of<ConfigError>([&] { run(plan_of({planned})); });
  EXPECT_NE(message.find("m/baseline/cuda:0/fp32/b1 has the device options {\"cudnn\":false}, this "
                         "one {\"cudnn\":true}"),
            std::string::npos)
      << message;
}

TEST_F(SessionTest, ARunOfAnotherBuildIsNotResumed) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  auto written = run(plan);
  resume = true;
  for (const char* name : {"libtorch", "commit", "cpu"}) {
    auto other = written;
    other.environment[name] = "another";
    records::write_run(other, scratch / "run");
    const auto message = message_of<ConfigError>([&] { run(plan); });
    EXPECT_NE(message.find(std::string(name) + " = \"another\", here it is"), std::string::npos)
        << message;
  }
}

TEST_F(SessionTest, AFolderThatHoldsARunIsRefused) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  run(plan);
  const auto message = message_of<ConfigError>([&] { run(plan); });
  EXPECT_NE(message.find("holds a run already"), std::string::npos);
  EXPECT_NE(message.find("--resume"), std::string::npos);
  overwrite = true;
  write_text(scratch / "run/notes.txt", "mine");
  EXPECT_EQ(run(plan).cases.size(), 1u);
  EXPECT_TRUE(fs::exists(scratch / "run/notes.txt"));
}

TEST_F(SessionTest, AResumedRunMayHaveMoreCases) {
  run(plan_of({planned_case("m", "baseline", "emulated:h100-80gb")}));
  runner.orders.clear();
  resume = true;
  const auto run = this->run(plan_of(
      {planned_case("m", "baseline", "emulated:h100-80gb"), planned_case("m", "baseline", "cpu")}));
  EXPECT_EQ(run.status, "complete");
  ASSERT_EQ(run.cases.size(), 2u);
  EXPECT_EQ(run.cases[1].status, Status::kOk);
  EXPECT_FALSE(runner.orders.empty());
  for (const auto& order : runner.orders) EXPECT_EQ(order.job.case_id, "m/baseline/cpu/fp32/b1");
}

TEST_F(SessionTest, ADifferentRunIsNotResumed) {
  run(plan_of({planned_case("m", "baseline")}));
  resume = true;
  auto message = message_of<ConfigError>([&] { run(plan_of({planned_case("n", "baseline")})); });
  EXPECT_NE(message.find("a different run"), std::string::npos);
  EXPECT_NE(message.find("it also has m/baseline/cpu/fp32/b1"), std::string::npos);
  auto plan = plan_of({planned_case("m", "baseline")});
  plan.request.steps = 5;
  message = message_of<ConfigError>([&] { run(plan); });
  EXPECT_NE(message.find("steps = 3, this one 5"), std::string::npos);
}

TEST_F(SessionTest, ACutShortRunIsNotResumed) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  run(plan);
  fs::resize_file(scratch / "run/run.json", 100);
  resume = true;
  EXPECT_THROW(run(plan), RunFileError);
}

TEST_F(SessionTest, OneRunAFolder) {
  const auto plan = plan_of({planned_case("m", "baseline")});
  const RunFolder other(scratch / "run");
  const auto message = message_of<ConfigError>([&] { run(plan); });
  EXPECT_NE(message.find("another peakbench is writing"), std::string::npos);
}

TEST_F(SessionTest, AFileInTheWayOfTheFolder) {
  write_text(scratch / "run", "a file");
  const auto message =
      message_of<ConfigError>([&] { run(plan_of({planned_case("m", "baseline")})); });
  EXPECT_NE(message.find("cannot make the folder"), std::string::npos);
  EXPECT_NE(message.find("--out"), std::string::npos);
}

TEST(Throughput, OneRoundIsKeptAsItIs) {
  auto one = throughput_of({5, 7});
  one.step_ns.median = 42;
  std::optional<records::Throughput> all;
  add_round(all, one, {2, 1, one.step_times_ns, {}}, records::CaseSpec{});
  EXPECT_EQ(all->step_ns.median, 42);
  ASSERT_EQ(all->rounds.size(), 1u);
  EXPECT_EQ(all->rounds[0].step_times_ns, (std::vector<std::int64_t>{5, 7}));
}

TEST(Throughput, StepsStandInTheOrderOfTheRounds) {
  std::optional<records::Throughput> all;
  for (const std::int64_t round : {2, 0, 1}) {
    auto one = throughput_of({10 * round + 1, 10 * round + 2});
    one.tokens_per_second = 1;
    records::CaseSpec spec;
    spec.batch_size = 2;
    spec.sequence_length = 5;
    add_round(all, one, {round, 0, one.step_times_ns, {}}, spec);
  }
  EXPECT_EQ(all->step_times_ns, (std::vector<std::int64_t>{1, 2, 11, 12, 21, 22}));
  EXPECT_EQ(all->step_ns.median, 11);
  EXPECT_EQ(all->step_ns.p90, 22);
  EXPECT_DOUBLE_EQ(all->samples_per_second, 2e9 / 11);
  EXPECT_DOUBLE_EQ(*all->tokens_per_second, 1e10 / 11);
}

TEST(Rounds, EachCaseHasEachPlaceAsOften) {
  for (const std::size_t count : {1u, 2u, 3u, 4u, 5u, 8u}) {
    std::map<std::pair<std::size_t, std::size_t>, int> times;  // case and place
    for (std::int64_t round = 0; round < static_cast<std::int64_t>(2 * count); ++round) {
      const auto order = round_order(count, round);
      ASSERT_EQ(order.size(), count);
      for (std::size_t place = 0; place < count; ++place) ++times[{order[place], place}];
    }
    ASSERT_EQ(times.size(), count * count);
    for (const auto& [which, number] : times) EXPECT_EQ(number, 2);
  }
  EXPECT_TRUE(round_order(0, 3).empty());
}

TEST(Rounds, EverySecondIsItsPredecessorBackwards) {
  EXPECT_EQ(round_order(4, 2), (std::vector<std::size_t>{1, 2, 3, 0}));
  EXPECT_EQ(round_order(4, 3), (std::vector<std::size_t>{0, 3, 2, 1}));
}

constexpr const char* kBefore =
    "cpu  9 9 9 9 9 9 9 9 9 9\n"
    "cpu0 100 5 20 1000 7 1 2 3 50 0\n"
    "cpu1 200 0 0 1000 0 0 0 0 0 0\n"
    "cpu10 900 0 0 0 0 0 0 0 0 0\n"
    "intr 12345 1 2\n";

TEST(MachineLoad, TicksAreThoseOfTheProcessorsThatWeMayUse) {
  EXPECT_EQ(busy_ticks(kBefore, {0}), 131);  // idle, iowait and guest are not counted
  EXPECT_EQ(busy_ticks(kBefore, {0, 1}), 331);
  EXPECT_EQ(busy_ticks(kBefore, {0, 2}), std::nullopt);
  EXPECT_EQ(busy_ticks("", {0}), std::nullopt);
  EXPECT_EQ(busy_ticks(kBefore, {}), std::nullopt);
}

TEST(MachineLoad, WhatTheWorkerTookIsNotOthers) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  // 350 ticks of a hundredth: 3.5 s of work in 2 s, of which the worker had 1.5 s.
  EXPECT_DOUBLE_EQ(*other_busy_cores(100, 450, 100, 3 * kSecond / 2, 2 * kSecond), 1.0);
  EXPECT_DOUBLE_EQ(*other_busy_cores(100, 200, 100, 2 * kSecond, 2 * kSecond), 0.0);
  EXPECT_EQ(other_busy_cores(std::nullopt, 450, 100, 0, kSecond), std::nullopt);
  EXPECT_EQ(other_busy_cores(100, std::nullopt, 100, 0, kSecond), std::nullopt);
  EXPECT_EQ(other_busy_cores(100, 450, 100, 0, 0), std::nullopt);
}

records::CaseResult case_in(nlohmann::json environment) {
  records::CaseResult result;
  result.environment = std::move(environment);
  return result;
}

TEST(RunEnvironment, HasWhatItsCasesAgreeOn) {
  const nlohmann::json host{{"cpu", "x"}, {"libtorch", "2.11.0"}};
  const auto says_nothing = case_in(nlohmann::json::object());
  EXPECT_EQ(run_environment(host, host, {&says_nothing}), host);
  const auto on_a = case_in({{"card", "A"}, {"libtorch", "2.11.0+cpu"}});
  const auto on_none = case_in({{"libtorch", "2.11.0+cpu"}});
  auto run = run_environment(host, host, {&on_a, &on_none});
  EXPECT_EQ(run.at("card"), "A");
  EXPECT_EQ(run.at("libtorch"), "2.11.0+cpu");
  // A later case disagrees: nothing of what was said before stays.
  const auto on_b = case_in({{"card", "B"}, {"libtorch", "2.12.0"}});
  const auto on_b_too = case_in({{"card", "B"}});
  run = run_environment(run, host, {&on_a, &on_b, &on_b_too});
  EXPECT_FALSE(run.contains("card"));
  EXPECT_EQ(run.at("libtorch"), "2.11.0");
  EXPECT_EQ(run.at("cpu"), "x");
}

TEST(Host, TheBudgetIsWhatWasAskedOrWhatIsLeft) {
  const HostMemory memory{std::int64_t{16} << 30, std::int64_t{10} << 30};
  EXPECT_EQ(memory_budget(5, memory), 5);
  EXPECT_EQ(memory_budget(0, memory), (std::int64_t{10} << 30) - (std::int64_t{1280} << 20));
  EXPECT_EQ(resident_limit(std::int64_t{1} << 30, memory), std::int64_t{2} << 30);
  EXPECT_LT(resident_limit(std::int64_t{100} << 30, memory), std::int64_t{10} << 30);
  const HostMemory own = host_memory();
  EXPECT_GT(own.available_bytes, 0);
  EXPECT_LE(own.available_bytes, own.total_bytes);
}

TEST(Host, AFreePortNeedsNoPrivileges) { EXPECT_GT(free_port(), 1023); }

TEST(DeviceEnvironment, OnlyEmulatedDevicesNeedOne) {
  EXPECT_TRUE(environment_for(records::device_from("cpu"), {}).empty());
  EXPECT_TRUE(environment_for(records::device_from("cuda:0"), {}).empty());
}

}  // namespace
}  // namespace peakbench::launch
