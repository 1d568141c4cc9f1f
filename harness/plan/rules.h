// Excludes and includes of a suite.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/axes.h"
#include "plan/plan.h"

namespace peakbench::plan {

// Leaves out the cases that agree with every field it has. A model or a stack agrees when its ids
// are the same and it has the options that the rule names, whatever others it has; with `*` the
// text is a pattern of the case id's part.
class Exclude {
 public:
  // Throws ConfigError at the rule's place for names that nothing offers.
  Exclude(const Rule& rule, const Resolver& resolver);

  bool matches(const result::CaseSpec& spec) const;

 private:
  void read(const std::string& name, const std::string& text, const Resolver& resolver);

  std::optional<result::Selection> model_;
  std::optional<std::vector<result::Selection>> stack_;
  std::vector<std::pair<std::string, std::string>> patterns_;  // field, pattern
  std::optional<std::int64_t> batch_size_, sequence_length_;
  std::vector<std::string> devices_;
  std::string dtype_;
};

// The axes of an include: those of the suite, with the rule's values in the place of the whole
// list.
Axes include_axes(const Rule& rule, const Resolver& resolver, const Axes& suite);

}  // namespace peakbench::plan
