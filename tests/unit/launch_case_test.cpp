// One case with a runner that starts nothing.
#include <gtest/gtest.h>

#include "launch/case.h"
#include "support/fake_plan.h"
#include "support/scratch.h"

namespace peakbench::launch {
namespace {

using namespace peakbench::testing;
using result::Status;

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
      report.result.out_of_memory = result::OutOfMemory{};
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

// What a kind has not is not asked of its cases.
TEST(Program, HasNoPromiseAndNoTimes) {
  const ScratchFolder scratch;
  auto planned = planned_case("mine", "baseline");
  planned.spec.kind = result::CaseKind::kProgram;
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

}  // namespace
}  // namespace peakbench::launch
