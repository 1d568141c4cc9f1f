#include "search/boundary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/numbers.h"
#include "search/sized_case.h"

namespace peakbench::search {
namespace {

// A hint that leads astray costs a run; so many of them do not matter.
constexpr int kMostHints = 8;
// Beside a number that was hinted at.
constexpr std::int64_t kLongestStep = 2;

class Search {
 public:
  Search(const Bounds& bounds, const Try& run)
      : bounds_(bounds), run_(run), low_(bounds.first - 1), high_(bounds.last + 1) {
    if (bounds.likely_runs) low_ = std::clamp(*bounds.likely_runs, bounds.first - 1, bounds.last);
    if (bounds.likely_not) high_ = std::clamp(*bounds.likely_not, bounds.first, bounds.last + 1);
    if (low_ >= high_) {  // they contradict each other: neither is taken for granted
      low_ = bounds.first - 1;
      high_ = bounds.last + 1;
    }
  }

  Boundary go(int beside) {
    auto next = inside(bounds_.start.value_or(bounds_.first));
    while (next && try_at(*next)) next = next_number();
    if (!found_.stopped_at) check_beside(beside);
    if (was_run(low_)) found_.runs = low_;
    if (was_run(high_)) found_.does_not = high_;
    return std::move(found_);
  }

 private:
  bool was_run(std::int64_t number) const { return found_.tried.contains(number); }
  bool is_open(std::int64_t number) const { return number > low_ && number < high_; }

  // What is asked for, or what lies nearest to it; nullopt: nothing is left between the two.
  std::optional<std::int64_t> inside(std::int64_t number) const {
    if (high_ - low_ <= 1) return beside_what_is_likely();
    return std::clamp(number, low_ + 1, high_ - 1);
  }

  // The ends that were taken for granted, once the boundary lies there.
  std::optional<std::int64_t> beside_what_is_likely() const {
    if (low_ >= bounds_.first && !was_run(low_)) return low_;
    if (high_ <= bounds_.last && !was_run(high_)) return high_;
    return std::nullopt;
  }

  // False: its run said neither.
  bool try_at(std::int64_t number) {
    const auto tried = run_(number);
    found_.tried[number] = tried.answer;
    if (tried.answer == Answer::kOther) {
      found_.stopped_at = number;
      return false;
    }
    const bool runs = tried.answer == Answer::kRuns;
    const bool turned = ran_ && *ran_ != runs;
    if (turned && !hinted_) galloping_ = false;
    const bool same_way = ran_ && !turned && hinted_ == was_hinted_;
    step_ = same_way ? step_ * 2 : 1;
    was_hinted_ = hinted_;
    // Where the other end is known, halving is quicker than many small steps.
    const bool is_bounded = runs ? high_ <= bounds_.last : low_ >= bounds_.first;
    if (is_bounded && !hinted_ && step_ > kLongestStep) galloping_ = false;
    take(number, runs);
    at_ = number;
    ran_ = runs;
    hint_ = tried.hint;
    return true;
  }

  // What was only likely gives way: the search begins anew on that side.
  void take(std::int64_t number, bool runs) {
    (runs ? low_ : high_) = number;
    if (low_ < high_) return;
    (runs ? high_ : low_) = runs ? bounds_.last + 1 : bounds_.first - 1;
    galloping_ = true;
    step_ = 1;
  }

  std::optional<std::int64_t> next_number() {
    hinted_ = false;
    if (high_ - low_ <= 1) return beside_what_is_likely();
    const auto away = *ran_ ? at_ + step_ : at_ - step_;
    if (hint_ && is_open(*hint_) && hints_ > 0) {
      --hints_;
      hinted_ = galloping_ = true;
      // At least a step away: hints that creep are helped along.
      const auto far = *ran_ ? std::max(*hint_, away) : std::min(*hint_, away);
      return is_open(far) ? far : *hint_;
    }
    // Away from what was run last, in growing steps, until the other answer comes; then the middle.
    return galloping_ && is_open(away) ? away : low_ + (high_ - low_) / 2;
  }

  void check_beside(int beside) {
    for (int i = 1; i < beside; ++i)
      for (const auto number : {low_ - i, high_ + i}) {
        if (number < bounds_.first || number > bounds_.last) continue;
        if (!was_run(number)) found_.tried[number] = run_(number).answer;
      }
    for (const auto& [number, answer] : found_.tried) {
      if (number < low_ && answer == Answer::kDoesNot) found_.against.push_back(number);
      if (number > high_ && answer == Answer::kRuns) found_.against.push_back(number);
    }
  }

  const Bounds& bounds_;
  const Try& run_;
  // What runs and what does not; outside of the bounds: nothing is known of it.
  std::int64_t low_, high_;
  std::int64_t at_ = 0, step_ = 1;  // what was run last
  std::optional<bool> ran_;
  std::optional<std::int64_t> hint_;
  int hints_ = kMostHints;
  // What was run last was hinted at, and what was run before that.
  bool hinted_ = false, was_hinted_ = false;
  bool galloping_ = true;
  Boundary found_;
};

}  // namespace

Boundary largest_that_runs(const Bounds& bounds, const Try& run, int beside) {
  return Search(bounds, run).go(beside);
}

namespace {

constexpr std::int64_t kMostUnits = kNoLimitBytes / kGranularityBytes;

std::int64_t units_of(std::int64_t bytes) {
  return std::max<std::int64_t>(1, (bytes + kGranularityBytes - 1) / kGranularityBytes);
}

// What was asked for is rounded up to whole segments, and nothing that is cached is left by then:
// https://github.com/pytorch/pytorch/blob/v2.11.0/c10/cuda/CUDACachingAllocator.cpp, alloc_block().
std::optional<std::int64_t> units_at_failure(const records::CaseResult& result) {
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

Answer answer_of(const records::CaseResult& result) {
  if (result.status == records::Status::kOk)
    return result.settings.contains(records::kCaughtOutOfMemory) ? Answer::kDoesNot : Answer::kRuns;
  const bool for_want_of_memory =
      result.status == records::Status::kOutOfMemory && result.out_of_memory.has_value();
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
