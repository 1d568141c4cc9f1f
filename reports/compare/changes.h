#pragma once

#include "reports/compare/compare.h"

namespace peakbench::compare {

// Fills measures, categories, growth and the direction of a case that ended ok in both. For this
// module alone.
void compare_memory(const Source& base, const records::CaseResult& before, const Source& now,
                    const records::CaseResult& after, const Policy& policy, CaseComparison& found);

// What else differs between two runs, and whether two cases may be compared at all. For this module
// alone.

// Environment, settings and versions that are not the same, in order of names; then settings of
// cases that both have, each with how many changed so.
std::vector<Change> changes_between(const records::Run& base, const records::Run& now);

// Why figures of the two must not be compared: other cards, emulated against real. Empty: they may.
std::string why_not_comparable(const records::Run& base, const records::CaseResult& before,
                               const records::Run& now, const records::CaseResult& after);

// Why times of the two say nothing about the code: another processor or clock, other threads.
std::string why_times_differ(const records::Run& base, const records::CaseResult& before,
                             const records::Run& now, const records::CaseResult& after);

// What differs in the traces of a program's two runs. For this module alone.

// Fills the lines and findings of a case. Both stay empty if either side has no trace of its peak
// or no call stacks. Findings are those of a kind that the other run has none of; lines are those
// whose bytes at the peak differ, the largest difference first, grown or shrunk.
//
// Lines are paired by file and function, and within a function by their order: those with the same
// number or the same bytes. So a line that an edit has moved stays the same line. Lines have NEW's
// numbers, removed ones BASE's. If the runs have no file in common (two folders), files are paired
// by their short names; if each has one, whatever it is called, the two are paired.
void compare_programs(const Source& base, const records::CaseResult& before, const Source& now,
                      const records::CaseResult& after, CaseComparison& found);

}  // namespace peakbench::compare
