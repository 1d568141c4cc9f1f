// One case with a runner that starts nothing.
#include <gtest/gtest.h>

#include <filesystem>

#include "launch/case.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::launch {
namespace {

using namespace peakbench::testing;
using records::Status;

// What a card that is large enough needs, after the card asked for ran out of memory.
std::optional<std::int64_t> needed_bytes(std::optional<std::int64_t> reserved) {
  const ScratchFolder scratch;
  const auto planned = planned_case("m", "baseline", "emulated:h100-80gb");
  const auto request = plan_of({}).request;
  FakeRunner runner;
  runner.answer = [&](const WorkerOrder& order) {
    WorkerReport report;
    if (runner.orders.size() == 1) {
      report.result.status = Status::kOutOfMemory;
      report.result.out_of_memory = records::OutOfMemory{};
    } else {
      EXPECT_TRUE(order.job.trace_path.empty()) << "the trace of the failure stays";
      report.result.memory = memory_of(3000);
      report.result.memory->peak_reserved_bytes = reserved;
    }
    return report;
  };
  CaseOrder order;
  order.planned = &planned;
  order.request = &request;
  order.run_directory = scratch / "run";
  const auto found = measure_memory(order, runner, {});
  EXPECT_EQ(runner.orders.size(), 2U);
  EXPECT_EQ(found->status, Status::kOutOfMemory);
  return found->out_of_memory->needed_bytes;
}

TEST(OutOfMemory, OnAnEmulatedCardSaysWhatIsNeeded) {
  EXPECT_EQ(needed_bytes(4096), 4096) << "reserved, where it is known: that has to fit";
  EXPECT_EQ(needed_bytes(std::nullopt), 3000);
}

// With its trace, if it wrote one.
TEST(Ranks, AWorkerIsRank0OfItsCase) {
  const ScratchFolder scratch;
  const auto planned = planned_case("m", "baseline");
  const auto request = plan_of({}).request;
  FakeRunner runner;
  const auto trace_of = [&](bool writes) {
    runner.answer = [writes](const WorkerOrder& order) {
      if (writes) write_text(order.job.trace_path, "x");
      return FakeRunner::good(order);
    };
    const auto found = measure_memory({&planned, &request, scratch / "run", {}}, runner, {});
    EXPECT_EQ(found->ranks.size(), 1U);
    EXPECT_EQ(found->ranks.at(0).rank, 0);
    EXPECT_EQ(found->ranks.at(0).memory->worker_peak_rss_bytes, 777);
    return found->ranks.at(0).trace;
  };
  EXPECT_EQ(trace_of(true), "cases/m-baseline/trace.sqlite");
  EXPECT_EQ(trace_of(false), "") << "that of an earlier attempt is removed";
}

// What a kind has not is not asked of its cases.
TEST(Program, HasNoPromiseAndNoTimes) {
  const ScratchFolder scratch;
  auto planned = planned_case("mine", "baseline");
  planned.spec.kind = records::CaseKind::kProgram;
  planned.spec.strategies.clear();
  planned.promise = {};
  const auto request = plan_of({}).request;
  FakeRunner runner;
  const auto found = measure_memory({&planned, &request, scratch / "run", {}}, runner, {});
  EXPECT_EQ(found->status, Status::kOk);
  EXPECT_FALSE(found->equivalence);
  EXPECT_FALSE(is_to_be_timed(*found, request));
  EXPECT_EQ(found->throughput_reason,
            "a program runs as it is: which of its steps to time is not known");
}

planning::PlannedCase planned_program(const std::string& device, std::int64_t timeout_s = 0) {
  auto planned = planned_case("mine", "baseline", device);
  planned.spec.kind = records::CaseKind::kProgram;
  planned.spec.strategies.clear();
  planned.strategies.clear();
  planned.promise = {};
  planned.reference.clear();
  planned.program =
      records::ProgramCommand{{"sh", "mine.sh"}, {{"A", "1"}}, "/", "here", timeout_s};
  return planned;
}

// It runs once: the emulated card computes its values from the first, and its own worker has no
// card.
TEST(Program, IsOneOrderForAWorkerOfItsOwn) {
  const ScratchFolder scratch;
  const auto planned = planned_program("emulated:h100-80gb", 7);
  const auto request = plan_of({}).request;
  FakeRunner runner;
  runner.answer = [](const WorkerOrder& order) {
    WorkerReport report;
    auto& found = report.result;
    found.status = Status::kOutOfMemory;
    found.out_of_memory = records::OutOfMemory{};
    found.emulation.emplace().read_backs.push_back({{"bytes", 4}});
    found.ranks = {{0, memory_of(10), "cases/mine/trace.sqlite"},
                   {1, memory_of(30), "cases/mine/trace.1.sqlite"}};
    return report;
  };
  const auto found = measure_memory({&planned, &request, scratch / "run", {}}, runner, {});
  ASSERT_EQ(runner.orders.size(), 1U);
  EXPECT_EQ(runner.orders[0].job.program->arguments, planned.program->arguments);
  EXPECT_TRUE(runner.orders[0].environment.empty());
  EXPECT_FALSE(runner.orders[0].forked);
  EXPECT_EQ(runner.orders[0].timeout, std::chrono::seconds(7));
  EXPECT_EQ(found->memory->peak_allocated_bytes, 30) << "the largest process's";
  EXPECT_EQ(found->ranks.size(), 2U);
  EXPECT_FALSE(found->out_of_memory->needed_bytes);
  EXPECT_EQ(found->settings, nlohmann::json({{"command", {"sh", "mine.sh"}},
                                             {"folder", "here"},
                                             {"environment", {{"A", "1"}}}}));
}

TEST(Program, HasTheRunsTimeLimitUnlessItHasOne) {
  const ScratchFolder scratch;
  const auto planned = planned_program("cpu");
  const auto request = plan_of({}).request;
  EXPECT_EQ(
      make_order({&planned, &request, scratch / "run", {}}, records::JobMode::kMemory).timeout,
      std::chrono::seconds(60));
}

// What an earlier attempt recorded, and the traces of processes that this one does not have.
TEST(Program, BeginsAndEndsInATidyFolder) {
  const ScratchFolder scratch;
  const auto planned = planned_program("cpu");
  const auto request = plan_of({}).request;
  const auto folder = scratch / "run/cases/" + planned.spec.slug;
  const auto leave = [&] {
    std::filesystem::create_directories(folder + "/journals.tmp");
    for (const char* name : {"journals.tmp/1.journal", "trace.sqlite", "trace.1.sqlite"})
      write_text(folder + "/" + name, "x");
  };
  leave();
  FakeRunner runner;
  runner.answer = [&](const WorkerOrder& order) {
    EXPECT_FALSE(std::filesystem::exists(folder + "/journals.tmp"));
    EXPECT_FALSE(std::filesystem::exists(folder + "/trace.1.sqlite"));
    leave();
    return FakeRunner::good(order);
  };
  measure_memory({&planned, &request, scratch / "run", {}}, runner, {});
  EXPECT_FALSE(std::filesystem::exists(folder + "/journals.tmp"));
  EXPECT_TRUE(std::filesystem::exists(folder + "/trace.1.sqlite"));
}

}  // namespace
}  // namespace peakbench::launch
