#include "search/least_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "search/sized_case.h"
#include "units/bytes.h"

namespace peakbench::search {
namespace {

constexpr std::int64_t kMostUnits = kNoLimitBytes / kGranularityBytes;

std::int64_t units_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, (bytes + kGranularityBytes - 1) / kGranularityBytes);
}

// What was asked for is rounded up to whole segments, and nothing that is cached is left by then:
// https://github.com/pytorch/pytorch/blob/v2.11.0/c10/cuda/CUDACachingAllocator.cpp, alloc_block().
std::optional<std::int64_t> units_at_failure(const result::CaseResult& result) {
  const auto& facts = result.out_of_memory;
  if (!facts || !facts->reserved_bytes) return std::nullopt;
  return units_of(*facts->reserved_bytes) + units_of(facts->requested_bytes);
}

std::string sizes(const std::vector<std::int64_t>& negative_units) {
  std::vector<std::string> texts;
  for (const auto units : negative_units) texts.push_back(gib_text(-units * kGranularityBytes));
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace

Answer answer_of(const result::CaseResult& result) {
  if (result.status == result::Status::kOk)
    return result.settings.contains(result::kCaughtOutOfMemory) ? Answer::kDoesNot : Answer::kRuns;
  const bool for_want_of_memory =
      result.status == result::Status::kOutOfMemory && result.out_of_memory.has_value();
  return for_want_of_memory ? Answer::kDoesNot : Answer::kOther;
}

// The boundary's search knows numbers that run below those that do not; memory is the other way
// round, so that limits are negative numbers there.
LeastMemory find_least_memory(const KnownPeaks& known, const RunUnderLimit& run, int beside) {
  LeastMemory least;
  const auto allocated = units_of(known.allocated_bytes);
  const auto most = known.card_bytes ? units_of(*known.card_bytes) : kMostUnits;
  Bounds bounds{.first = -most, .last = -1, .start = -std::min(allocated, most)};
  bounds.likely_not = -std::max<std::int64_t>(allocated - 1, 0);
  bounds.likely_runs = -std::min(most, std::max(allocated + 1, units_of(known.reserved_bytes)));
  std::string other;
  const auto under_limit = [&](std::int64_t negative_units) -> Tried {
    const auto result = run(-negative_units * kGranularityBytes);
    ++least.runs;
    if (!result) {
      other = "interrupted";
      return {};
    }
    const auto answer = answer_of(*result);
    if (answer == Answer::kOther)
      other = fmt::format("with {} it ended {}: {}", gib_text(-negative_units * kGranularityBytes),
                          to_string(result->status), result->reason);
    const auto units = units_at_failure(*result);
    if (answer != Answer::kDoesNot || !units) return {.answer = answer};
    return {.answer = answer, .hint = -*units};
  };
  const auto found = largest_that_runs(bounds, under_limit, beside);
  if (found.stopped_at) {
    least.note = other;
    return least;
  }
  if (!found.runs) {
    least.note = "it runs in none of the sizes that were tried";
    return least;
  }
  const auto bytes = -*found.runs * kGranularityBytes;
  least.bytes = known.card_bytes ? std::min(bytes, *known.card_bytes) : bytes;
  std::vector<std::int64_t> less, more;
  for (const auto units : found.against) (units > *found.runs ? less : more).push_back(units);
  if (!less.empty()) least.note = fmt::format("it ran in less, too: {}", sizes(less));
  if (!more.empty())
    least.note += fmt::format("{}it did not run in a little more: {}",
                              least.note.empty() ? "" : "; ", sizes(more));
  return least;
}

}  // namespace peakbench::search
