#include "result/ranks.h"

#include <algorithm>
#include <tuple>

namespace peakbench::result {

std::size_t largest_rank(const std::vector<Rank>& ranks) {
  const auto size_of = [](const Rank& rank) {
    return std::tuple(rank.memory.has_value(), rank.memory ? rank.memory->peak_allocated_bytes : 0,
                      !rank.memory && !rank.trace.empty());
  };
  const auto found = std::ranges::max_element(ranks, {}, size_of);
  return found == ranks.end() ? 0 : static_cast<std::size_t>(found - ranks.begin());
}

const Rank& headline_rank(const CaseResult& result) {
  static const Rank none;
  return result.ranks.empty() ? none : result.ranks[largest_rank(result.ranks)];
}

}  // namespace peakbench::result
