#include "launch/rounds.h"

#include <algorithm>
#include <numeric>

#include "launch/case.h"

namespace peakbench::launch {

std::vector<std::size_t> round_order(std::size_t count, std::int64_t round) {
  std::vector<std::size_t> order(count);
  if (count == 0) return order;
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto first = static_cast<std::size_t>(round / 2) % count;
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::int64_t> missing_rounds(const records::CaseResult& result, std::int64_t rounds) {
  std::vector<std::int64_t> missing;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const bool done = result.throughput && std::ranges::count(result.throughput->rounds, round,
                                                              &records::TimingRound::round) > 0;
    if (!done) missing.push_back(round);
  }
  return missing;
}

namespace {

void summarise(records::Throughput& all, const records::CaseSpec& spec) {
  all.step_times_ns.clear();
  for (const auto& one : all.rounds)
    all.step_times_ns.insert(all.step_times_ns.end(), one.step_times_ns.begin(),
                             one.step_times_ns.end());
  all.step_ns = records::step_times_of(all.step_times_ns);
  if (all.step_ns.median <= 0) return;
  all.samples_per_second =
      static_cast<double>(spec.batch_size) * 1e9 / static_cast<double>(all.step_ns.median);
  if (all.tokens_per_second && spec.sequence_length)
    all.tokens_per_second = all.samples_per_second * static_cast<double>(*spec.sequence_length);
}

}  // namespace

void add_round(std::optional<records::Throughput>& all, const records::Throughput& found,
               records::TimingRound round, const records::CaseSpec& spec) {
  if (!all) {
    all = found;
    all->rounds = {std::move(round)};
    return;
  }
  auto& rounds = all->rounds;
  const auto at = std::ranges::upper_bound(rounds, round.round, {}, &records::TimingRound::round);
  rounds.insert(at, std::move(round));
  summarise(*all, spec);
}

Turn turn_of(const planning::Plan& plan, const CaseStates& states, std::size_t index,
             records::JobMode mode) {
  Turn turn;
  turn.case_id = plan.cases[index].spec.id;
  turn.mode = mode;
  turn.rounds = plan.request.repetitions;
  for (const auto i : states.pending) {
    if (plan.cases[i].decided) continue;
    const auto& result = states.results[i];
    if (!result) ++turn.memory_workers;
    if (!result && states.has_times[i])
      turn.throughput_workers += static_cast<std::size_t>(turn.rounds);
    if (result && is_to_be_timed(*result, plan.request))
      turn.throughput_workers += missing_rounds(*result, turn.rounds).size();
  }
  return turn;
}

}  // namespace peakbench::launch
