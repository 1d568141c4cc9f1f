// What else differs between two runs, and whether two cases may be compared at all. For the room's
// own use.
#pragma once

#include "reports/compare/compare.h"

namespace peakbench::compare {

// Environment, settings and versions that are not the same, in order of names; then settings of
// cases that both have, each with how many changed so.
std::vector<Change> changes_between(const result::Run& base, const result::Run& now);

// Why figures of the two must not be compared: other cards, emulated against real. Empty: they may.
std::string why_not_comparable(const result::Run& base, const result::CaseResult& before,
                               const result::Run& now, const result::CaseResult& after);

// Why times of the two say nothing about the code: another processor or clock, other threads.
std::string why_times_differ(const result::Run& base, const result::CaseResult& before,
                             const result::Run& now, const result::CaseResult& after);

}  // namespace peakbench::compare
