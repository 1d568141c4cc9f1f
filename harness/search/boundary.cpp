#include "search/boundary.h"

#include <algorithm>

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

}  // namespace peakbench::search
