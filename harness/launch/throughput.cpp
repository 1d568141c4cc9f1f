#include "launch/throughput.h"

#include <algorithm>

#include "result/step_times.h"

namespace peakbench::launch {
namespace {

void summarise(result::Throughput& all, const result::CaseSpec& spec) {
  all.step_times_ns.clear();
  for (const auto& one : all.rounds)
    all.step_times_ns.insert(all.step_times_ns.end(), one.step_times_ns.begin(),
                             one.step_times_ns.end());
  all.step_ns = result::step_times_of(all.step_times_ns);
  if (all.step_ns.median <= 0) return;
  all.samples_per_second =
      static_cast<double>(spec.batch_size) * 1e9 / static_cast<double>(all.step_ns.median);
  if (all.tokens_per_second && spec.sequence_length)
    all.tokens_per_second = all.samples_per_second * static_cast<double>(*spec.sequence_length);
}

}  // namespace

void add_round(std::optional<result::Throughput>& all, const result::Throughput& found,
               result::TimingRound round, const result::CaseSpec& spec) {
  if (!all) {
    all = found;
    all->rounds = {std::move(round)};
    return;
  }
  const auto before = [](const result::TimingRound& a, const result::TimingRound& b) {
    return a.round < b.round;
  };
  auto& rounds = all->rounds;
  rounds.insert(std::upper_bound(rounds.begin(), rounds.end(), round, before), round);
  summarise(*all, spec);
}

}  // namespace peakbench::launch
