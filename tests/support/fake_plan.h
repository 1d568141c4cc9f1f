// Plans made by hand, and a runner without processes.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "launch/runner.h"
#include "planning/plan.h"

namespace peakbench::testing {

// Promises to train bit for bit as the stack `reference` does.
inline planning::PlannedCase planned_case(const std::string& model, const std::string& stack,
                                          const std::string& device = "cpu",
                                          const std::string& reference = "baseline") {
  planning::PlannedCase planned;
  planned.spec.id = model + "/" + stack + "/" + device + "/fp32/b1";
  planned.spec.slug = model + "-" + stack;
  planned.spec.model = {model, nlohmann::json::object()};
  planned.spec.strategies = {{stack, nlohmann::json::object()}};
  planned.spec.device = device;
  planned.spec.dtype = "fp32";
  planned.model.selection = planned.spec.model;
  planned.strategies = {{{"baseline", nlohmann::json::object()}, nlohmann::json::object(), ""}};
  if (stack != "baseline")
    planned.strategies.push_back({planned.spec.strategies[0], nlohmann::json::object(), ""});
  planned.promise.promise = "bit_identical";
  planned.reference = {{reference, nlohmann::json::object()}};
  return planned;
}

inline planning::Plan plan_of(std::vector<planning::PlannedCase> cases) {
  planning::Plan plan;
  plan.request.title = "test";
  plan.request.timeout_s = 60;
  plan.request.repetitions = 1;
  plan.reference = "baseline";
  plan.cases = std::move(cases);
  return plan;
}

inline records::Memory memory_of(std::int64_t peak) {
  records::Memory memory;
  memory.peak_allocated_bytes = memory.peak_requested_bytes = peak;
  memory.at_peak = {{"parameter", peak}};
  memory.peak_phase = "forward";
  memory.steps = 3;
  return memory;
}

inline records::Throughput throughput_of(std::vector<std::int64_t> times) {
  records::Throughput throughput;
  throughput.step_times_ns = times;
  throughput.step_ns = {times.front(), times.front(), times.front(),
                        static_cast<std::int64_t>(times.size())};
  throughput.samples_per_second = 1;
  throughput.clock = "steady_clock";
  return throughput;
}

// Answers at once: ok with figures, unless `answer` says otherwise. Remembers every order.
class FakeRunner : public launch::Runner {
 public:
  launch::WorkerReport run(const launch::WorkerOrder& order,
                           const launch::Listener& listener) override {
    listener.progress({.phase = "forward", .step = 0, .steps = 3});
    listener.tick();
    orders.push_back(order);
    auto report = answer ? answer(order) : good(order);
    report.wall_ns = 1'000'000;
    report.other_busy_cores = 0.25;
    return report;
  }

  static launch::WorkerReport good(const launch::WorkerOrder& order) {
    launch::WorkerReport report;
    report.peak_rss_bytes = 777;
    if (order.job.mode == records::JobMode::kMemory)
      report.result.memory = memory_of(1 << 30);
    else
      report.result.throughput = throughput_of({4, 2, 3});
    return report;
  }

  std::vector<launch::WorkerOrder> orders;
  std::function<launch::WorkerReport(const launch::WorkerOrder&)> answer;
};

}  // namespace peakbench::testing
