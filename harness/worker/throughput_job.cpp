#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>

#include "result/errors.h"
#include "worker/engine.h"
#include "worker/jobs.h"
#include "worker/progress.h"
#include "worker/session.h"

namespace peakbench::worker {
namespace {

// Google Benchmark drives the loop; its own tables are not what we report.
class SilentReporter final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>&) override {}
};

std::int64_t timed_step(const Session& session, device::Device& device) {
  return device.time_ns([&] { session.training->step(session.batch, [](trace::Phase) {}); });
}

result::StepTimes statistics(std::vector<std::int64_t> times) {
  std::sort(times.begin(), times.end());
  const auto quantile = [&](double q) {  // nearest rank
    const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(times.size())));
    return times[std::max<std::size_t>(rank, 1) - 1];
  };
  return {.min = times.front(),
          .median = quantile(0.5),
          .p90 = quantile(0.9),
          .count = static_cast<std::int64_t>(times.size())};
}

std::vector<std::int64_t> time_steps(const result::Job& job, const Session& session,
                                     device::Device& device) {
  std::vector<std::int64_t> times;
  const auto loop = [&](benchmark::State& state) {
    for (auto _ : state) {
      report({"step", job.warmup + static_cast<std::int64_t>(times.size()), job.warmup + job.steps,
              0, 0});
      times.push_back(timed_step(session, device));
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

result::WorkerResult run_throughput_job(const result::Job& job) {
  install_engine();
  const auto device = make_device(job);
  if (!device->why_not_timed().empty())
    throw ConfigError("no step is timed here: " + device->why_not_timed());

  report({"build", 0, job.warmup + job.steps, 0, 0});
  const Session session = make_session(job, *device, nullptr);
  for (std::int64_t i = 0; i < job.warmup; ++i) {
    report({"warmup", i, job.warmup + job.steps, 0, 0});
    timed_step(session, *device);
  }

  result::Throughput throughput;
  throughput.step_times_ns = time_steps(job, session, *device);
  throughput.step_ns = statistics(throughput.step_times_ns);
  throughput.clock = device->clock();
  throughput.threads = at::get_num_threads();
  const double seconds = static_cast<double>(throughput.step_ns.median) * 1e-9;
  throughput.samples_per_second = static_cast<double>(job.batch_size) / seconds;
  if (job.sequence_length) {
    throughput.tokens_per_second =
        static_cast<double>(job.batch_size * *job.sequence_length) / seconds;
  }
  result::WorkerResult result;
  result.throughput = std::move(throughput);
  result.settings = device->settings();
  result.settings.update(device->state());
  result.environment = device->environment();
  return result;
}

}  // namespace peakbench::worker
