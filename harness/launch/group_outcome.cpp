#include "launch/group_outcome.h"

#include <fmt/format.h>

#include <algorithm>

#include "result/ranks.h"

namespace peakbench::launch {

bool is_interrupted(const GroupReport& report) {
  return std::ranges::count(report.ranks, CutShort::kByCtrlC, &WorkerReport::cut_short) > 0;
}

std::optional<std::size_t> first_failure(const std::vector<WorkerReport>& ranks) {
  std::optional<std::size_t> first;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& rank = ranks[i];
    if (rank.cut_short != CutShort::kNo || rank.result.status == result::Status::kOk) continue;
    if (!first || rank.ended < ranks[*first].ended) first = i;
  }
  return first;
}

namespace {

// What is doubtful of one rank is of the case: the others met it. The largest rank's, of equals.
const result::Verdict* worst_verdict(const std::vector<WorkerReport>& ranks,
                                     const result::WorkerResult& largest) {
  const auto of = [](const result::WorkerResult& rank) {
    return rank.emulation && rank.emulation->verdict ? &*rank.emulation->verdict : nullptr;
  };
  const auto* worst = of(largest);
  for (const auto& rank : ranks) {
    const auto* verdict = of(rank.result);
    if (verdict != nullptr &&
        (worst == nullptr || result::doubt(verdict->kind) > result::doubt(worst->kind)))
      worst = verdict;
  }
  return worst;
}

}  // namespace

result::WorkerResult group_outcome(const std::vector<WorkerReport>& ranks) {
  if (const auto failed = first_failure(ranks)) {
    auto outcome = ranks[*failed].result;
    if (ranks.size() > 1)
      outcome.reason = fmt::format("rank {} of {}: {}", *failed, ranks.size(), outcome.reason);
    return outcome;
  }
  std::vector<result::Rank> memories;
  for (const auto& rank : ranks) memories.emplace_back().memory = rank.result.memory;
  const auto& largest = ranks.at(result::largest_rank(memories)).result;
  auto outcome = ranks.front().result;
  outcome.memory = largest.memory;
  outcome.emulation = largest.emulation;
  if (const auto* verdict = worst_verdict(ranks, largest); verdict != nullptr && outcome.emulation)
    outcome.emulation->verdict = *verdict;
  return outcome;
}

}  // namespace peakbench::launch
