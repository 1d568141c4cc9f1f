// How fast a case is against others, with what is known of how surely; and whether the machine was
// left alone while it was timed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/render/record.h"
#include "reports/report/group.h"

namespace peakbench::reports {

struct TimeView {  // one of `faster`, `slower`, `noise` and `no_interval` holds
  std::string percent, interval, half_width, rounds, more_rounds, no_interval;
  bool faster = false, slower = false, noise = false;

  static constexpr const char* kSummary =
      "Step time against the reference; absent where there is nothing to compare";
  FieldValues fields() const {
    return {
        {"percent", percent, "Signed per cent"},
        {"interval", interval, "Its interval, `+1.0 to +5.2`; empty with fewer than three rounds"},
        {"half_width", half_width, "Half of the interval's width, without a sign"},
        {"rounds", rounds, "The rounds it is from"},
        {"faster", faster, "Faster than the reference, beyond noise"},
        {"slower", slower, "Slower than the reference, beyond noise"},
        {"noise", noise, "Not distinguishable from noise"},
        {"more_rounds", more_rounds,
         "Then: rounds more that should settle it, where that is known"},
        {"no_interval", no_interval, "Why it has no interval, else empty"}};
  }
};

// Against the reference's; nullopt where there is nothing to compare.
std::optional<TimeView> time_view(const result::CaseResult& result, const Group& group);

struct RoundView {
  std::string number, place, step_ms, other_cores;
  bool busy = false;

  FieldValues fields() const {
    return {
        {"number", number, "1-based"},
        {"place", place, "When in the round it was its turn, 1-based"},
        {"step_ms", step_ms, "The round's median step"},
        {"other_cores", other_cores, "Cores that other processes kept busy; empty where not known"},
        {"busy", busy, "That is more than a tenth of the cores"}};
  }
};

struct BusyView {
  std::string most, cores, count, timings;

  FieldValues fields() const {
    return {{"most", most, "The most cores that they kept busy"},
            {"cores", cores, "Of so many"},
            {"count", count, "Timings disturbed: by more than a tenth of the cores"},
            {"timings", timings, "Timings whose load is known"}};
  }
};

// Is the case's time known with an interval against that of every timed case of the group?
bool has_intervals(const result::CaseResult& result, const Group& group);
// The other cases that could be as fast as the fastest, each with its mark; not those that broke
// their promise.
std::string tied_with(const result::CaseResult& fastest, const Group& group);

}  // namespace peakbench::reports
