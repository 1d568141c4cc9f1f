#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "records/run.h"
#include "trace/alive.h"
#include "trace/lines.h"

namespace peakbench::analysis {

// Memory alive at the maximum of each phase, summed by category, module and operator. It shows
// which part grew between two runs without their traces. The history keeps the parts of runs whose
// traces are deleted.

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

// The parts of the case's own space at the first maximum of allocated bytes of each phase, over all
// steps (build: before them). Sorted by phase, then by name, so that the same trace gives the same
// parts. Guarantee: a phase's block_bytes sum to `phases.PHASE.peak_allocated_bytes` of
// trace::summarise(). Throws TraceError for an inconsistent trace.
std::vector<Part> parts_of(const trace::Trace& trace);

// The allocations behind parts_of(), by phase; a phase in which nothing was alive is left out.
std::map<std::string, trace::Alive> alive_at_maxima(const trace::Trace& trace);

// Of all cases that have a trace in `folder`. A trace that cannot be read leaves its case out;
// where `notes` is given, why is added to it, one line each.
std::vector<CaseParts> parts_of_run(const records::Run& run, const std::string& folder,
                                    std::vector<std::string>* notes = nullptr);

// Compact: {"words": [...], "cases": [{"id", "parts": [[phase, allocated_in, category, module, op,
// requested_bytes, block_bytes], ...]}]}, names as indices in `words`. The same parts, the same
// JSON. Reading throws RunFileError that names what is wrong.
nlohmann::json to_json(const std::vector<CaseParts>& cases);
std::vector<CaseParts> parts_from_json(const nlohmann::json& json);

// One run to compare, with the available data of its traces.

struct Source {
  records::Run run;
  std::vector<CaseParts> parts;  // of cases whose trace existed when they were added
  std::string folder;            // where traces are, to be read where they are needed; "" = none
  std::string label;             // "results/new", "main@latest (run 12, 3f9c2d1)"
  // From `peakbench emulate --json`: it has allocated and reserved memory at the peak and, if the
  // program was traced, its categories and `lines`. Other figures of a case are unknown, not zero.
  bool peaks_only = false;
  std::vector<trace::LineShare> lines = {};
};

// Causes, not rows: allocations folded by category and by what they have in common
// (`encoder.layers.*`, `*.exp_avg`), of one moment or of what differs between two. Pure.

// Allocations that are alike.
struct Alike {
  std::string allocated_in, category, module, op, name, shape, dtype;
  std::int64_t requested_bytes = 0, block_bytes = 0;  // of one
  std::int64_t count = 0;                             // below 0: so many that BASE alone has
};

// What one of two sides has of a cause.
struct Held {
  std::int64_t tensors = 0;  // 0 where a history keeps sums alone
  std::int64_t requested_bytes = 0, block_bytes = 0;
  std::set<std::string> dtypes, shapes;  // those known

  bool operator==(const Held&) const = default;
};

// Allocations of one category that have their place in common.
struct Cause {
  std::string category;
  // The tensor's name where it is one; the module where all are in it; else the pattern of their
  // layers, or for optimizer state of its names. Empty where none is known.
  std::string where;
  std::string op;  // that all have in common, of tensors without names; else empty
  Held base, now;  // `base` is empty where one moment was folded

  std::int64_t requested_difference() const { return now.requested_bytes - base.requested_bytes; }
  std::int64_t block_difference() const { return now.block_bytes - base.block_bytes; }

  bool operator==(const Cause&) const = default;
};

struct CategoryCauses {
  std::string category;
  std::int64_t requested_difference = 0, block_difference = 0;  // sums of the causes'
  std::vector<Cause> causes;

  bool operator==(const CategoryCauses&) const = default;
};

// `encoder.layers.3.mlp.0` and `h.layer_3.mlp` -> `encoder.layers.*`, `h.layer_*`: up to the first
// part that is counted. A path without one stays as it is.
std::string layer_pattern(const std::string& module);

// Allocations that one of the two has and the other has no like of, the most bytes first; what only
// BASE has last.
std::vector<Alike> differences_of(const trace::Alive& base, const trace::Alive& now);

// Memory alive at one moment, folded: small enough to keep and to compare with another trace's.
class Fold {
 public:
  Fold() = default;
  explicit Fold(const trace::Alive& alive);
  void add(const Alike& one);

  // The causes of the difference to `base`, as of causes_of(); numbers of tensors are of all alike.
  std::vector<CategoryCauses> against(const Fold& base) const;
  std::vector<CategoryCauses> causes() const;

 private:
  // What all have in common, or that they differ.
  struct Common {
    std::string text;
    bool is_set = false, differs = false;
    void add(const std::string& one);
    void add(const Common& other);
    std::string shared() const { return differs ? "" : text; }
  };
  struct Group {
    Common module, name, op;
    Held base, now;
  };
  static Cause cause_of(const std::string& category, const std::string& pattern,
                        const Group& group);
  std::map<std::pair<std::string, std::string>, Group> groups_;  // by category and pattern
};

// Of differences, or of one moment. Guarantee: the causes' bytes sum to what was given, exactly;
// none is without a difference. The largest difference comes first, grown or shrunk.
std::vector<CategoryCauses> causes_of(const std::vector<Alike>& alike);
std::vector<CategoryCauses> causes_of(const trace::Alive& alive);
// Parts that differ between two maxima, with the differences as their bytes; by name.
std::vector<Part> differences_of(const std::vector<Part>& base, const std::vector<Part>& now,
                                 const std::string& phase_in_base, const std::string& phase);
// Of sums alone, as a history keeps them: without numbers of tensors, names and dtypes.
std::vector<CategoryCauses> causes_of(const std::vector<Part>& base, const std::vector<Part>& now,
                                      const std::string& phase_in_base, const std::string& phase);

}  // namespace peakbench::analysis
