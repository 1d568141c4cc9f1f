#include "records/case.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace peakbench::records {
namespace {

constexpr std::array<std::pair<Status, const char*>, 9> kNames{{
    {Status::kOk, "ok"},
    {Status::kOutOfMemory, "out_of_memory"},
    {Status::kTimeout, "timeout"},
    {Status::kCrashed, "crashed"},
    {Status::kUnsupported, "unsupported"},
    {Status::kConflict, "conflict"},
    {Status::kNoEffect, "no_effect"},
    {Status::kHostFailure, "host_failure"},
    {Status::kInterrupted, "interrupted"},
}};

}  // namespace

std::string to_string(Status status) {
  for (const auto& [value, name] : kNames) {
    if (value == status) return name;
  }
  throw std::invalid_argument("no such status");
}

Status status_from_string(const std::string& text) {
  for (const auto& [value, name] : kNames) {
    if (text == name) return value;
  }
  throw std::invalid_argument("no such status: " + text);
}

const Verdict* verdict_of(const CaseResult& result) {
  return result.emulation && result.emulation->verdict ? &*result.emulation->verdict : nullptr;
}

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

StepTimes step_times_of(std::vector<std::int64_t> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  // The smallest step that at least `percent` of all steps do not exceed.
  const auto quantile = [&](std::size_t percent) {
    return times[(times.size() * percent + 99) / 100 - 1];
  };
  return {.min = times.front(),
          .median = quantile(50),
          .p90 = quantile(90),
          .count = static_cast<std::int64_t>(times.size())};
}

}  // namespace peakbench::records
