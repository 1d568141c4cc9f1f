#include "launch/rounds.h"

#include <algorithm>
#include <numeric>

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

std::vector<std::int64_t> missing_rounds(const result::CaseResult& result, std::int64_t rounds) {
  std::vector<std::int64_t> missing;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const auto is_it = [round](const result::TimingRound& done) { return done.round == round; };
    const bool done = result.throughput && std::any_of(result.throughput->rounds.begin(),
                                                       result.throughput->rounds.end(), is_it);
    if (!done) missing.push_back(round);
  }
  return missing;
}

}  // namespace peakbench::launch
