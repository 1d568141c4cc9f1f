// A run with every field filled, for tests of what reads and writes runs.
#pragma once

#include "records/run.h"

namespace peakbench::testing {

inline records::Memory example_memory() {
  records::Memory memory;
  memory.space = "cuda:0";
  memory.peak_allocated_bytes = 6'087'938'768;
  memory.peak_requested_bytes = 6'087'938'000;
  memory.peak_reserved_bytes = 7'000'000'000;
  memory.at_peak = {{"parameter", 1'217'306'528}, {"temporary", 4'870'632'240}};
  memory.peak_phase = "optimizer_step";
  memory.peak_step = 1;
  memory.steps = 3;
  memory.phases["build"] = {1'217'306'528, 1'217'306'528};
  memory.phases["optimizer_step"] = {6'087'938'768, 6'087'938'000};
  memory.spaces["cuda:0"] = {6'087'938'768, 6'087'938'000, 7'000'000'000};
  memory.spaces["cpu"] = {1024, 1000, std::nullopt};
  memory.context_bytes = 500'000'000;
  memory.worker_peak_rss_bytes = 800'000'000;
  return memory;
}

inline records::StepWork example_work() {
  records::WorkCounts forward{.operators = 20,
                              .flops = 1'000'000'000'000,
                              .recomputed_flops = 0,
                              .flops_by_precision = {{"fp32", 1'000'000'000'000}},
                              .read_bytes = 3 << 20,
                              .written_bytes = 2 << 20,
                              .device = records::DeviceWork{.kernel_launches = 25}};
  records::WorkCounts backward{.operators = 50,
                               .flops = 3'000'000'000'000,
                               .recomputed_flops = 900'000'000'000,
                               .flops_by_precision = {{"fp32", 3'000'000'000'000}},
                               .read_bytes = 6 << 20,
                               .written_bytes = 4 << 20,
                               .device = records::DeviceWork{.kernel_launches = 55}};
  records::WorkCounts total{.operators = 70,
                            .flops = 4'000'000'000'000,
                            .recomputed_flops = 900'000'000'000,
                            .flops_by_precision = {{"fp32", 4'000'000'000'000}},
                            .read_bytes = 9 << 20,
                            .written_bytes = 6 << 20,
                            .device = records::DeviceWork{.kernel_launches = 80}};
  return {.step = 2,
          .total = total,
          .phases = {{"forward", forward}, {"backward", backward}},
          .without_formula = {{"aten::_grouped_mm", 3}},
          .bound = records::StepBound{.least_step_ns = 60'000'000,
                                      .memory_bytes_per_second = 3'352'000'000'000,
                                      .flops_per_second = {{"fp32", 66'900'000'000'000}}}};
}

inline records::CaseResult example_case() {
  records::CaseResult result;
  result.spec.id = "qwen2.5-0.5b,layers=4/lora,rank=16/emulated:h100-80gb/fp32/b2/s256";
  result.spec.slug = "qwen2.5-0.5b-layers-4.lora-rank-16.0a1b2c3d";
  result.spec.model = {"qwen2.5-0.5b", {{"layers", 4}}};
  result.spec.strategies = {{"lora", {{"rank", 16}, {"targets", "q+k"}, {"alpha", 0.5}}}};
  result.spec.device = "emulated:h100-80gb";
  result.spec.device_options = {{"cudnn", false}};
  result.spec.dtype = "fp32";
  result.spec.batch_size = 2;
  result.spec.sequence_length = 256;
  result.spec.seed = 7;
  result.added_for = records::kAddedForAblation;
  result.memory = example_memory();
  result.work = example_work();
  result.throughput = records::Throughput{.step_ns = {10, 20, 30, 3},
                                          .step_times_ns = {10, 20, 30},
                                          .rounds = {{0, 1, {10, 20}, 0.5}, {1, 0, {30}, {}}},
                                          .samples_per_second = 1e8,
                                          .tokens_per_second = 2.56e10,
                                          .clock = "steady_clock",
                                          .threads = 2};
  result.throughput_reason = "";
  result.equivalence =
      records::Equivalence{.promise = "within_tolerance",
                           .different_problem = true,
                           .reference_case = "qwen2.5-0.5b/baseline/cpu/fp32/b2/s256",
                           .verdict = "held",
                           .max_abs_difference = 1e-7,
                           .tolerance = 1e-5,
                           .relative_tolerance = 1e-3,
                           .reason = ""};
  records::OutOfMemory facts;
  facts.requested_bytes = 100;
  facts.allocated_bytes = 200;
  facts.limit_bytes = 250;
  facts.reserved_bytes = 240;
  facts.largest_free_block_bytes = 10;
  facts.retries = 2;
  facts.phase = "backward";
  facts.module = "blocks.0.mlp";
  facts.op = "aten::mm";
  facts.step = 1;
  facts.needed_bytes = 400;
  result.out_of_memory = facts;
  records::Emulation emulation;
  emulation.card = "h100-80gb";
  emulation.refused_calls = {"cusolverDnCreate"};
  emulation.unmodelled = {{"cudnn engine workspace", 24}};
  emulation.read_backs = {{{"bytes", 8}, {"count", 1}, {"caller", "at::item"}}};
  emulation.verdict = records::Verdict{.kind = records::VerdictKind::lower_bound,
                                       .reasons = {"exact unless one workspace exceeds 1.000 GiB"},
                                       .conditions = {"aten::item read floating values"},
                                       .notes = {"a note"},
                                       .advice = {"--cudnn off"},
                                       .workspace_room_bytes = 1 << 30,
                                       .estimate = std::nullopt,
                                       .second_guess = std::nullopt};
  result.emulation = emulation;
  result.losses = {2.5, 2.25};
  result.ranks = {{0, example_memory(), "cases/x/trace.sqlite"}};
  result.plugins = {{"model", "qwen2.5-0.5b", "decoder.so", std::string(64, 'a')},
                    {"strategy", "baseline", "baseline.so", std::string(64, 'b')},
                    {"strategy", "lora", "lora.so", ""}};
  result.settings = {{"threads", 2}};
  result.environment = {{"card", "NVIDIA H100"}};
  result.wall_ns = 123'456'789;
  return result;
}

inline records::Run example_run() {
  records::Run run;
  run.title = "An example";
  run.created = "2026-01-02T03:04:05Z";
  run.status = "interrupted";
  run.command = {"peakbench", "run", "suite.toml"};
  run.suite = "suite.toml";
  run.reference = "baseline";
  run.environment = {{"host", "here"}};
  run.settings = {{"steps", 3}};
  run.published = {{"vit-l-16", "baseline", "peak_memory", 6.0, "GB", "a tutorial",
                    "https://example.org", "", "fp32", 8, 512}};
  run.cases = {example_case()};
  run.pending = {"vit-l-16/foreach-off/cpu/fp32/b1"};
  return run;
}

}  // namespace peakbench::testing
