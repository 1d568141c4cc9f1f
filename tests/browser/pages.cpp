// Writes run folders and their reports for the browser tests and for benchmarks/report_scale.py.
//
//   peakbench_browser_pages KIND TEMPLATES DIR [EVENTS]     KIND: tutorial, hostile, emulated,
//   program, trainer or million
//
// Prints the seconds that the report itself took: of the clock, and of the processor (they differ
// on a busy machine).
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iostream>

#include "fake_trace.h"
#include "program_run.h"
#include "records.h"
#include "reports/run/report.h"
#include "trace/lifetimes.h"
#include "trace/snapshot_export.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace {

using namespace peakbench;
namespace fs = std::filesystem;

constexpr std::int64_t kPage = 4096;

golden::FakeTraining training_of(std::size_t place, int layers, bool emulated) {
  golden::FakeTraining training;
  training.layers = layers;
  training.layer_bytes = 1'200'000'000 / layers / kPage * kPage;
  training.activation_bytes = 420'000'000 / layers / kPage * kPage;
  training.foreach = place == 0 || place == 3;
  training.fused_in_backward = place == 2 || place == 4;
  training.emulated = emulated;
  if (place == 4) training.activation_bytes /= 3;
  return training;
}

void add_trace(records::CaseResult& result, std::size_t place, const golden::FakeTraining& training,
               const fs::path& folder) {
  const trace::Trace trace = golden::fake_trace(training);
  const std::string path = "cases/" + std::to_string(place) + "/trace.sqlite";
  fs::create_directories((folder / path).parent_path());
  trace::write_trace(trace, (folder / path).string());
  trace::write_memory_snapshot(trace, trace::lifetimes(trace),
                               (folder / path).replace_filename("snapshot.pickle").string());
  const std::int64_t resident = result.memory ? result.memory->worker_peak_rss_bytes : 0;
  result.memory = trace::summarise(trace);
  result.memory->worker_peak_rss_bytes = resident;
  result.ranks = {{0, result.memory, path}};
}

records::Run run_of(const std::string& kind, const fs::path& folder, long events) {
  if (kind == "program") return golden::program_run(folder.string(), {.many_lines = true});
  if (kind == "trainer") return golden::program_run(folder.string(), {.trainer = true});
  records::Run run = kind == "hostile"    ? golden::hostile_run()
                     : kind == "emulated" ? golden::emulated_run()
                                          : golden::tutorial_run();
  const bool million = kind == "million";
  if (million) run.cases.resize(1);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    if (!run.cases[i].memory) continue;
    golden::FakeTraining training = training_of(i, 24, run.cases[i].emulation.has_value());
    // Three steps of 24 layers, each with its temporaries in forward and backward, every one
    // allocated and freed.
    training.irregular = million;
    if (million) training.temporaries = static_cast<int>(events / (3 * 24 * 2 * 2));
    add_trace(run.cases[i], i, training, folder);
  }
  return run;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "peakbench_browser_pages KIND TEMPLATES DIR [EVENTS]\n";
    return 2;
  }
  const fs::path folder(arguments[3]);
  fs::create_directories(folder);
  records::write_run(run_of(arguments[1], folder, count > 4 ? std::atol(arguments[4]) : 0),
                     folder.string());
  reports::ReportOptions options;
  options.builtin_template_directory = arguments[2];
  options.output_directory = (folder / "report").string();
  const auto started = std::chrono::steady_clock::now();
  const std::clock_t used = std::clock();
  reports::write_reports({folder.string()}, options);
  std::cout << std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count()
            << " " << static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC << "\n";
}
