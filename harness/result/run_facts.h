// What a run says of itself in run.json's `environment` and `settings`, and what follows for two
// runs that differ in it: one table for whoever continues, merges, deals out or compares runs.
#pragma once

#include <string>
#include <vector>

namespace peakbench::result {

enum class FactOf { kEnvironment, kSettings };

struct RunFact {
  const char* name;
  FactOf of;
  bool is_build = false;    // which program: figures of two builds are no run
  bool is_resumed = false;  // a run goes on only where it is the same
  bool is_merged = false;   // runs are joined only where it is the same
  bool is_machine = false;  // a case says it of itself where it ran on another machine than its run
  bool makes_times = false;    // times are compared only where it is the same
  bool is_incidental = false;  // says nothing about a figure
};

const std::vector<RunFact>& run_facts();

// Names of those for which this holds, in the order in which differences are told:
// names_where(FactOf::kSettings, &RunFact::is_merged).
std::vector<std::string> names_where(FactOf of, bool RunFact::*holds);

}  // namespace peakbench::result
