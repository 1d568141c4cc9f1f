// Runs to compare, with known answers: plain records, or a folder with a trace.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "reports/compare/compare.h"
#include "support/fake_trace.h"
#include "support/scratch.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::testing {

inline records::CaseResult fake_case(const std::string& id, std::int64_t bytes) {
  records::CaseResult result;
  result.spec.id = result.spec.slug = id;
  std::replace(result.spec.slug.begin(), result.spec.slug.end(), '/', '-');
  const auto device = id.substr(id.find('/', id.find('/') + 1) + 1);
  result.spec.device = device.substr(0, device.find('/'));
  records::Memory memory;
  memory.peak_allocated_bytes = memory.peak_requested_bytes = bytes;
  memory.at_peak = {{"parameter", bytes}};
  memory.peak_phase = "forward";
  memory.phases["forward"] = {bytes, bytes};
  result.memory = memory;
  if (result.spec.device.rfind("emulated:", 0) == 0)
    result.emulation = records::Emulation{result.spec.device, {}, {}, {}};
  return result;
}

inline records::CaseResult timed_case(std::vector<std::int64_t> step_times_ns) {
  auto result = fake_case("tiny/baseline/cpu/fp32/b1", 1000);
  records::Throughput throughput;
  throughput.step_ns.median = statistics::median_of(step_times_ns);
  throughput.step_ns.count = static_cast<std::int64_t>(step_times_ns.size());
  throughput.step_times_ns = std::move(step_times_ns);
  throughput.clock = "steady_clock";
  throughput.threads = 2;
  result.throughput = throughput;
  return result;
}

inline analysis::Source plain_source(const std::string& label,
                                     std::vector<records::CaseResult> cases) {
  analysis::Source source;
  source.label = label;
  source.run.title = "A suite";
  source.run.created = "2026-01-02T03:04:05Z";
  source.run.environment = {{"cpu", "a processor"}, {"commit", "0a1b2c3"}};
  source.run.settings = {{"steps", 3}, {"repetitions", 1}};
  source.run.cases = std::move(cases);
  return source;
}

// Two steps on a card: a parameter of 1000 bytes, an activation, a gradient, a temporary of the
// update; with `kept`, one byte of the first block that lives from forward to the next forward.
inline trace::Trace tiny_trace(bool kept) {
  using trace::Role;
  trace::FakeTrace fake("cuda:0");
  fake.emulated();
  fake.named(Role::kParameter, "encoder.layers.0.weight", "[250]", "fp32").alloc(1000, 1024);
  trace::FakeTrace::Allocation extra = 0;
  for (int step = 0; step < 2; ++step) {
    fake.forward(step);
    if (kept && step > 0) fake.free(extra);
    if (kept) extra = fake.at("encoder.layers.0", "aten::empty").alloc(1, 512);
    const auto hidden = fake.at("encoder.layers.0", "aten::addmm").alloc(2000, 2048);
    fake.backward(step).at("encoder.layers.0", "AddmmBackward0");
    fake.named(Role::kGradient, "encoder.layers.0.weight");
    const auto gradient = fake.alloc(1000, 1024);
    fake.free(hidden);
    fake.optimizer_step(step).at("", "aten::sqrt");
    fake.free(fake.alloc(1500, 1536));
    fake.free(gradient);
  }
  if (kept) fake.free(extra);
  return fake.trace();
}

// A run of one case on the emulated card, in a folder of its own with its trace.
class FakeRun {
 public:
  explicit FakeRun(const trace::Trace& trace) {
    auto result = fake_case("tiny/baseline/emulated:h100-80gb/fp32/b1", 0);
    result.memory = trace::summarise(trace);
    records::Rank rank;
    rank.trace = "cases/" + result.spec.slug + "/trace.sqlite";
    result.ranks = {rank};
    source_ = plain_source(folder_.path(), {result});
    source_.folder = folder_.path();
    const auto path = std::filesystem::path(source_.folder) / rank.trace;
    std::filesystem::create_directories(path.parent_path());
    trace::write_trace(trace, path.string());
  }

  const analysis::Source& source() const { return source_; }
  analysis::Source& source() { return source_; }

 private:
  ScratchFolder folder_;
  analysis::Source source_;
};

}  // namespace peakbench::testing
