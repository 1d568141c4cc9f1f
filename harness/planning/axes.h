#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/errors.h"
#include "planning/catalogue.h"
#include "planning/plan.h"
#include "planning/stack.h"

namespace peakbench::planning {

// The request's texts as what they name: every name known, every option typed.

// Values of one axis: of each setting that axis alone is meant.
using Values = std::vector<records::Setting>;

// The lists that multiply: models and stacks with what is known of them, the other axes as values.
struct Axes {
  std::vector<Choice> models;
  std::vector<Stack> stacks;
  std::map<records::Axis, Values> others;  // no sequence length: each model's default
};

// Throws ConfigError, with the place in the suite where there is one; axes() of all mistakes.
class Resolver {
 public:
  // All must outlive this. `build`: of `builds`, whose values the axes `torch` and `build` have.
  Resolver(const Request& request, const Catalogue& catalogue, std::span<const Build> builds,
           const Build& build);

  Axes axes() const;

  // `section` and `text` find the place in Request::where ("models/vit-l-16").
  Choice model(const std::string& section, const std::string& text) const;
  Stack stack(const std::string& section, const std::string& text) const;
  // Values of another axis: several for the device `auto`, none for another build's release or
  // name. Messages about an integer name it by its section, or by the axis without one.
  Values values(const records::AxisRow& row, const std::string& section,
                const std::string& text) const;

  // Tables of options for ids that no plugin offers, or with options that they lack.
  void check_tables() const;

 private:
  void resolve(const records::AxisRow& row, const std::string& text, Axes& axes) const;
  const Offer& named(planning::Kind kind, const std::string& id) const;
  Values devices(const std::string& text) const;
  Values of_build(const records::AxisRow& row, const std::string& text) const;

  const Request& request_;
  const Catalogue& catalogue_;
  std::span<const Build> builds_;
  const Build& build_;
  const records::Setting here_;  // the build's values
};

// Axes whose values come from the builds that run the cases.
inline bool is_of_build(records::Axis axis) {
  return axis == records::Axis::kTorch || axis == records::Axis::kBuild;
}

// Throws ConfigError that says what was expected.
void check_integer(const std::string& name, std::int64_t value, std::int64_t least,
                   std::int64_t most);

// Runs `call`; a ConfigError gets "FILE:LINE:COLUMN: " in front where `places` has `key`.
template <class Call>
auto at_place(const std::map<std::string, std::string>& places, const std::string& key,
              Call&& call) {
  try {
    return call();
  } catch (const ConfigError& error) {
    const auto place = places.find(key);
    if (place == places.end()) throw;
    throw ConfigError(place->second + ": " + error.what());
  }
}

// Excludes and includes of a suite.

// Leaves out the cases that match every field. A model or a stack matches if its ids are equal and
// it has the options that the rule names; it may have others. With `*`, a text is a pattern of that
// part of the case id.
class Exclude {
 public:
  // Throws ConfigError at the rule's place for names that nothing offers.
  Exclude(const Rule& rule, const Resolver& resolver);

  bool matches(const records::Setting& setting) const;

 private:
  void read(const records::AxisRow& row, const std::string& text, const Resolver& resolver);

  std::optional<records::Selection> model_;
  std::optional<std::vector<records::Selection>> stack_;
  std::map<const records::AxisRow*, std::string> patterns_;
  std::map<const records::AxisRow*, Values> values_;  // one of them
};

// The axes of an include: the suite's, with the lists in the rule replaced by its values.
Axes include_axes(const Rule& rule, const Resolver& resolver, const Axes& suite);

}  // namespace peakbench::planning
