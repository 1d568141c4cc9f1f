// Fills a history with runs that nobody made, through the library's own door: for
// benchmarks/history_scale.py and for the browser's tests.
//
//   peakbench_history_fill FILE RUNS CASES [PARTS]    PARTS: parts of a case's peaks (default 60)
//
// What it makes is the same every time: steps up and down, a change of LibTorch, a change of
// driver, a case that runs out of memory, a clock that goes back, two cards, two branches. Prints
// the seconds that adding took.
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <sstream>

#include "reports/trends/history.h"

namespace {

using namespace peakbench;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kDay = 86'400;

// A fixed sequence: figures must not depend on the machine.
std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 33U;
  value *= 0xff51afd7ed558ccdULL;
  value ^= value >> 33U;
  value *= 0xc4ceb9fe1a85ec53ULL;
  return value ^ (value >> 33U);
}

std::string date_of(std::int64_t run) {
  const bool clock_back = run % 97 == 60;
  const auto moment =
      static_cast<std::time_t>(1'700'000'000 + run * kDay / 4 - (clock_back ? 9 * kDay : 0));
  std::ostringstream text;
  text << std::put_time(std::gmtime(&moment), "%Y-%m-%dT%H:%M:%SZ");
  return text.str();
}

std::string commit_of(std::int64_t run) {
  std::ostringstream text;
  text << std::hex << std::setfill('0') << std::setw(16) << mixed(static_cast<std::uint64_t>(run))
       << std::setw(16) << mixed(static_cast<std::uint64_t>(run) + 77) << "00000000";
  return text.str();
}

// Steps up and down: every 40 runs something changes, mostly by one block.
std::int64_t drift(std::int64_t run, std::int64_t place) {
  const std::int64_t epoch = (run + place * 7) / 40;
  const auto kind = mixed(static_cast<std::uint64_t>(epoch * 131 + place % 5)) % 4;
  return epoch * 512 + static_cast<std::int64_t>(kind) * 3 * 1024 * 1024;
}

records::Memory memory_of(std::int64_t run, std::int64_t place) {
  records::Memory memory;
  memory.peak_allocated_bytes = (2 + place % 9) * kGiB + 123'456'512 + drift(run, place);
  memory.peak_requested_bytes = memory.peak_allocated_bytes - 98'304;
  memory.peak_reserved_bytes = memory.peak_allocated_bytes / (2 << 20) * (2 << 20) + (64 << 20);
  const std::int64_t fifth = memory.peak_requested_bytes / 5;
  memory.at_peak = {{"parameter", fifth},
                    {"gradient", fifth},
                    {"optimizer_state", 2 * fifth},
                    {"temporary", memory.peak_requested_bytes - 4 * fifth},
                    {"allocator_slack", 98'304}};
  memory.peak_phase = "optimizer_step";
  memory.peak_step = 1;
  memory.steps = 3;
  for (const char* phase : {"build", "forward", "backward", "optimizer_step"})
    memory.phases[phase] = {memory.peak_allocated_bytes, memory.peak_requested_bytes};
  memory.spaces["cuda:0"] = {memory.peak_allocated_bytes, memory.peak_requested_bytes,
                             memory.peak_reserved_bytes};
  memory.worker_peak_rss_bytes = 800'000'000;
  return memory;
}

records::Throughput throughput_of(std::int64_t run, std::int64_t place) {
  records::Throughput throughput;
  const auto noise =
      static_cast<std::int64_t>(mixed(static_cast<std::uint64_t>(run * 1009 + place)) % 1'000'000);
  const std::int64_t median = 40'000'000 + place * 1'000'000 + noise;
  throughput.step_ns = {median - 400'000, median, median + 700'000, 10};
  for (std::int64_t step = 0; step < 10; ++step)
    throughput.step_times_ns.push_back(median + (step - 5) * 80'000);
  throughput.samples_per_second = 1e9 / static_cast<double>(median);
  throughput.clock = "cuda_event";
  throughput.threads = 8;
  return throughput;
}

const char* model_of(std::int64_t place) {
  static constexpr const char* kModels[] = {"vit-l-16", "vit-b-16", "qwen2.5-0.5b", "llama-3.1-8b",
                                            "qwen2.5-1.5b,layers=4"};
  return kModels[place % 5];
}

records::CaseResult case_of(std::int64_t run, std::int64_t place, bool real) {
  static constexpr const char* kStacks[] = {"baseline", "foreach-off", "fused-in-backward", "lora",
                                            "checkpointing"};
  records::CaseResult result;
  auto& spec = result.spec;
  spec.model.id = model_of(place);
  spec.strategies = {{kStacks[place / 5 % 5]}};
  spec.device = real ? "cuda:0" : "emulated:h100-80gb";
  spec.dtype = place / 25 % 2 == 0 ? "fp32" : "bf16";
  spec.batch_size = 1 + place / 50;
  spec.id = spec.model.id + "/" + spec.strategies[0].id + "/" + spec.device + "/" + spec.dtype +
            "/b" + std::to_string(spec.batch_size);
  spec.slug = "case-" + std::to_string(place);
  if (place % 10 == 3 && run % 50 == 20) {
    result.status = records::Status::kOutOfMemory;
    result.reason = "asked 2.000 GiB of what the card had not";
    return result;
  }
  result.memory = memory_of(run, place);
  if (real)
    result.throughput = throughput_of(run, place);
  else
    result.emulation =
        records::Emulation{"emulated:h100-80gb", {}, {{"cudnn engine workspace", 24}}};
  result.ranks = {{0, result.memory, "cases/" + spec.slug + "/trace.sqlite"}};
  result.losses = {2.5, 2.4, 2.3};
  result.wall_ns = 3'000'000'000;
  return result;
}

records::Run run_of(std::int64_t run, std::int64_t runs, std::int64_t cases) {
  records::Run made;
  made.title = "Nightly";
  made.suite = "nightly.toml";
  made.reference = "baseline";
  made.command = {"peakbench", "run", "suites/nightly.toml"};
  made.created = date_of(run);
  const bool real = run % 2 == 1 && cases > 1;  // every other run on a real card, a few cases of it
  made.environment = {{"card", "NVIDIA H100 80GB HBM3"},
                      {"cpu", "AMD EPYC 9654"},
                      {"driver_cuda_version", run < runs * 3 / 4 ? 13000 : 13010},
                      {"libtorch", run < runs / 2 ? "2.10.0+cu130" : "2.11.0+cu130"},
                      {"libtorch_cuda", "13.0"},
                      {"peakbench", "0.1.0"},
                      {"commit", commit_of(run)}};
  made.settings = {{"steps", 3}, {"warmup", 1}, {"repetitions", 1}, {"seed", 0}};
  for (std::int64_t place = 0; place < cases; ++place)
    made.cases.push_back(case_of(run, place, real && place % 10 == 0));
  return made;
}

std::vector<analysis::CaseParts> parts_of(const records::Run& run, std::int64_t count) {
  static constexpr const char* kPhases[] = {"build", "forward", "backward", "optimizer_step"};
  std::vector<analysis::CaseParts> all;
  for (const auto& result : run.cases) {
    if (!result.memory) continue;
    analysis::CaseParts parts{result.spec.id, {}};
    for (std::int64_t i = 0; i < count; ++i)
      parts.parts.push_back({kPhases[i % 4], kPhases[i % 3], "parameter",
                             "encoder.layers." + std::to_string(i / 4), "aten::empty",
                             1'000'000 + i * 4096, 1'000'448 + i * 4096});
    all.push_back(std::move(parts));
  }
  return all;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "peakbench_history_fill FILE RUNS CASES [PARTS]\n";
    return 2;
  }
  const std::int64_t runs = std::atoll(arguments[2]), cases = std::atoll(arguments[3]);
  const std::int64_t parts = count > 4 ? std::atoll(arguments[4]) : 60;
  try {
    auto history = trends::History::open_to_write(arguments[1]);
    const auto started = std::chrono::steady_clock::now();
    for (std::int64_t run = 0; run < runs; ++run) {
      const auto made = run_of(run, runs, cases);
      trends::Labels labels{run % 29 == 28 ? "try-<b>it</b>" : "main", commit_of(run), "passed",
                            ""};
      if (run % 40 == 0 && run > 0) labels.verdict = "regressed";
      if (run % 40 == 1 && run > 40) {
        labels.verdict = "accepted";
        labels.note = "a larger workspace, wanted";
      }
      history.add(made, parts_of(made, parts), labels);
    }
    std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count()
              << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
