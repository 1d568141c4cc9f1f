// What was alive at the maximum of each phase, summed by category, module and operator: enough to
// say which part grew between two runs, without their traces. A small library of its own
// (peakbench_parts): the history keeps parts of runs whose traces are gone.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "result/run.h"
#include "trace/alive.h"

namespace peakbench::analysis {

struct Part {
  std::string phase;         // the phase whose maximum this is
  std::string allocated_in;  // the phase in which the bytes were allocated
  std::string category;      // never allocator_slack: that is block_bytes - requested_bytes
  std::string module, op;    // empty where unknown; `(root)` is the model itself
  std::int64_t requested_bytes = 0, block_bytes = 0;

  bool operator==(const Part&) const = default;
};

struct CaseParts {
  std::string case_id;
  std::vector<Part> parts;

  bool operator==(const CaseParts&) const = default;
};

// The parts of the case's own space, at the first maximum of allocated bytes of each
// phase over all steps (build: before them), in order of phases, then of names: the same trace, the
// same parts. Guarantee: a phase's block_bytes sum to `phases.PHASE.peak_allocated_bytes` of
// trace::summarise(). Throws TraceError where the trace does not add up.
std::vector<Part> parts_of(const trace::Trace& trace);

// The allocations behind parts_of(), by phase; a phase in which nothing was alive is left out.
std::map<std::string, trace::Alive> alive_at_maxima(const trace::Trace& trace);

// Of one case of a run whose traces lie in `folder`; nullopt where the case has no trace there (not
// recorded, not kept). Throws ConfigError for one that is damaged or newer.
std::optional<std::vector<Part>> parts_of_case(const result::CaseResult& result,
                                               const std::string& folder);

// Of all cases that have a trace. A trace that cannot be read leaves its case out; where `notes` is
// given, why is added to it, one line each.
std::vector<CaseParts> parts_of_run(const result::Run& run, const std::string& folder,
                                    std::vector<std::string>* notes = nullptr);

// Compact: {"words": [...], "cases": [{"id", "parts": [[phase, allocated_in, category, module, op,
// requested_bytes, block_bytes], ...]}]}, names as indices in `words`. The same parts, the same
// JSON. Reading throws RunFileError that names what is wrong.
nlohmann::json to_json(const std::vector<CaseParts>& cases);
std::vector<CaseParts> parts_from_json(const nlohmann::json& json);

}  // namespace peakbench::analysis
