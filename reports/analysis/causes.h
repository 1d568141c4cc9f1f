// Causes, not rows: allocations folded by category and by what they have in common
// (`encoder.layers.*`, `*.exp_avg`), of one moment or of what differs between two. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reports/analysis/parts.h"
#include "trace/alive.h"

namespace peakbench::analysis {

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

// What is alive at one moment, folded: small, to be kept and held against that of another trace.
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
// Of sums alone, as a history keeps them: without numbers of tensors, names and dtypes.
std::vector<CategoryCauses> causes_of(const std::vector<Part>& base, const std::vector<Part>& now,
                                      const std::string& phase_in_base, const std::string& phase);

}  // namespace peakbench::analysis
