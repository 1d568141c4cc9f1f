#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include "base/errors.h"
#include "records/case.h"
#include "trace/lifetimes.h"
#include "worker/engine.h"
#include "worker/jobs.h"
#include "worker/progress.h"
#include "worker/setup.h"

namespace peakbench::worker {
namespace {

// Google Benchmark drives the loop; its own tables are not what we report.
class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

// `number` counts warm-up steps too.
std::int64_t timed_step(const records::Job& job, const Setup& setup, recording::Device& device,
                        std::int64_t number) {
  const std::int64_t steps = job.warmup + job.steps;
  const Batch& batch = setup.batches->of_step(number);
  return device.time_ns([&] {
    setup.training->step(batch, [&](trace::Phase phase) { set_place(phase, number, steps); });
  });
}

std::vector<std::int64_t> time_steps(const records::Job& job, const Setup& setup,
                                     recording::Device& device) {
  std::vector<std::int64_t> times;
  const auto loop = [&](benchmark::State& state) {
    for (auto _ : state) {
      const std::int64_t number = job.warmup + static_cast<std::int64_t>(times.size());
      report({"step", number, job.warmup + job.steps, 0, 0});
      times.push_back(timed_step(job, setup, device, number));
      constexpr double kNanosecond = 1e-9;
      state.SetIterationTime(static_cast<double>(times.back()) * kNanosecond);
    }
  };
  benchmark::RegisterBenchmark(job.case_id.c_str(), loop)->UseManualTime()->Iterations(job.steps);
  SilentReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  return times;
}

}  // namespace

records::WorkerResult run_throughput_job(const records::Job& job) {
  install_engine();
  const auto device = make_device(job);
  if (!device->why_not_timed().empty())
    throw ConfigError("no step is timed here: " + device->why_not_timed());

  report({trace::to_string(trace::Phase::kBuild), 0, job.warmup + job.steps, 0, 0});
  Setup setup;
  make_setup(job, *device, nullptr, setup);
  for (std::int64_t i = 0; i < job.warmup; ++i) {
    report({"warmup", i, job.warmup + job.steps, 0, 0});
    timed_step(job, setup, *device, i);
  }

  records::Throughput throughput;
  throughput.step_times_ns = time_steps(job, setup, *device);
  need_effects(setup, job.warmup + job.steps);
  throughput.step_ns = records::step_times_of(throughput.step_times_ns);
  throughput.clock = device->clock();
  throughput.threads = at::get_num_threads();
  const double seconds = static_cast<double>(throughput.step_ns.median) * 1e-9;
  throughput.samples_per_second = static_cast<double>(job.batch_size) / seconds;
  // Of steps of several lengths, a median step has no number of tokens.
  if (job.sequence_length && !setup.batches->shapes_differ()) {
    throughput.tokens_per_second =
        static_cast<double>(job.batch_size * *job.sequence_length) / seconds;
  }
  records::WorkerResult result;
  result.throughput = std::move(throughput);
  result.settings = device->settings();
  result.settings.update(device->state());
  result.environment = device->environment();
  return result;
}

}  // namespace peakbench::worker
