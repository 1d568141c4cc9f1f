// Excludes and includes of a suite.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/axes.h"
#include "plan/plan.h"

namespace peakbench::plan {

// Leaves out the cases that agree with every field it has. A model or a stack agrees when its ids
// are the same and it has the options that the rule names, whatever others it has; with `*` a text
// is a pattern of the case id's part.
class Exclude {
 public:
  // Throws ConfigError at the rule's place for names that nothing offers.
  Exclude(const Rule& rule, const Resolver& resolver);

  bool matches(const result::Setting& setting) const;

 private:
  void read(const result::AxisRow& row, const std::string& text, const Resolver& resolver);

  std::optional<result::Selection> model_;
  std::optional<std::vector<result::Selection>> stack_;
  std::map<const result::AxisRow*, std::string> patterns_;
  std::map<const result::AxisRow*, Values> values_;  // one of them
};

// The axes of an include: those of the suite, with the rule's values in the place of the whole
// list.
Axes include_axes(const Rule& rule, const Resolver& resolver, const Axes& suite);

}  // namespace peakbench::plan
