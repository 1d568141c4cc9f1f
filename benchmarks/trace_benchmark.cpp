// A trace of a million events: analysed, written, read, exported.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "support/synthetic_trace.h"
#include "trace/alive.h"
#include "trace/chrome_export.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "trace/snapshot_export.h"
#include "trace/summary.h"
#include "trace/timeline.h"
#include "trace/trace_file.h"

namespace {

using namespace peakbench::trace;

const Trace& million() {
  static const auto trace = synthetic_trace(1'000'000);
  return trace;
}

const std::vector<Lifetime>& million_lifetimes() {
  static const auto found = lifetimes(million());
  return found;
}

std::string path() {
  return (std::filesystem::temp_directory_path() / "peakbench-benchmark-trace").string();
}

void report(benchmark::State& state, bool file = false) {
  state.counters["events"] = static_cast<double>(million().events.size());
  if (!file) return;
  state.counters["file_bytes"] = static_cast<double>(std::filesystem::file_size(path()));
  std::filesystem::remove(path());
}

void pair_and_categorise(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(lifetimes(million()));
  report(state);
}
BENCHMARK(pair_and_categorise)->Unit(benchmark::kMillisecond);

void peak(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(find_peak(million(), million_lifetimes()));
  report(state);
}
BENCHMARK(peak)->Unit(benchmark::kMillisecond);

void summary(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(summarise(million(), million_lifetimes()));
  report(state);
}
BENCHMARK(summary)->Unit(benchmark::kMillisecond);

void three_levels_of_detail(benchmark::State& state) {
  for (auto _ : state)
    benchmark::DoNotOptimize(
        timeline_levels(million(), million_lifetimes(), {1'000, 10'000, 100'000}));
  report(state);
}
BENCHMARK(three_levels_of_detail)->Unit(benchmark::kMillisecond);

void alive_at_the_peak(benchmark::State& state) {
  const auto event = find_peak(million(), million_lifetimes()).event;
  for (auto _ : state) benchmark::DoNotOptimize(alive_at(million(), million_lifetimes(), event));
  report(state);
}
BENCHMARK(alive_at_the_peak)->Unit(benchmark::kMillisecond);

void anatomy_of_all_phases(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(anatomy(million(), million_lifetimes()));
  report(state);
}
BENCHMARK(anatomy_of_all_phases)->Unit(benchmark::kMillisecond);

void write_sqlite(benchmark::State& state) {
  for (auto _ : state) write_trace(million(), path());
  report(state, true);
}
BENCHMARK(write_sqlite)->Unit(benchmark::kMillisecond);

void read_sqlite(benchmark::State& state) {
  write_trace(million(), path());
  for (auto _ : state) benchmark::DoNotOptimize(read_trace(path()));
  report(state, true);
}
BENCHMARK(read_sqlite)->Unit(benchmark::kMillisecond);

void write_snapshot(benchmark::State& state) {
  for (auto _ : state) write_memory_snapshot(million(), million_lifetimes(), path());
  report(state, true);
}
BENCHMARK(write_snapshot)->Unit(benchmark::kMillisecond);

void write_chrome(benchmark::State& state) {
  for (auto _ : state) write_chrome_trace(million(), million_lifetimes(), path());
  report(state, true);
}
BENCHMARK(write_chrome)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
