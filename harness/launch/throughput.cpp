#include "launch/throughput.h"

#include <algorithm>
#include <cstddef>

namespace peakbench::launch {
namespace {

// Nearest rank, as the worker has it: always a step that was measured.
result::StepTimes statistics(std::vector<std::int64_t> steps) {
  std::sort(steps.begin(), steps.end());
  const std::size_t count = steps.size();
  if (count == 0) return {};
  return {.min = steps.front(),
          .median = steps[(count + 1) / 2 - 1],
          .p90 = steps[(count * 9 + 9) / 10 - 1],
          .count = static_cast<std::int64_t>(count)};
}

}  // namespace

result::Throughput combine(const std::vector<result::Throughput>& repetitions,
                           const result::CaseSpec& spec) {
  result::Throughput all = repetitions.front();
  if (repetitions.size() == 1) return all;
  all.step_times_ns.clear();
  for (const auto& one : repetitions)
    all.step_times_ns.insert(all.step_times_ns.end(), one.step_times_ns.begin(),
                             one.step_times_ns.end());
  all.step_ns = statistics(all.step_times_ns);
  if (all.step_ns.median <= 0) return all;
  all.samples_per_second =
      static_cast<double>(spec.batch_size) * 1e9 / static_cast<double>(all.step_ns.median);
  if (all.tokens_per_second && spec.sequence_length)
    all.tokens_per_second = all.samples_per_second * static_cast<double>(*spec.sequence_length);
  return all;
}

}  // namespace peakbench::launch
