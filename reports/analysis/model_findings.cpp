// Models of earlier rounds that are still alive.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "reports/analysis/by_line.h"

namespace peakbench::analysis {
namespace {

using trace::Category;
using trace::Lifetime;

using Parameter = std::pair<std::string, std::int64_t>;  // name and size

// Parameters that one line made between two beginnings of steps and that are alive at the peak.
// What is trained together is made together.
struct Generation {
  std::vector<const Lifetime*> made = {};
  std::multiset<Parameter> parameters = {};
  std::set<std::string> names = {};  // those known
};
using Generations = std::map<std::size_t, Generation>;  // by the step that begins next

// Without the class before it, which stands there where several models were seen.
std::string name_in_model(const std::string& name) {
  const auto dot = name.find('.');
  const bool has_class = !name.empty() && name.front() >= 'A' && name.front() <= 'Z';
  return has_class && dot != std::string::npos ? name.substr(dot + 1) : name;
}

std::map<std::size_t, Generations> generations_by_line(const Program& program) {
  std::map<std::size_t, Generations> found;
  for (const auto& lifetime : program.lifetimes) {
    const bool counts = lifetime.category == Category::kParameter && is_own(program, lifetime) &&
                        is_at_peak(program, lifetime);
    if (!counts) continue;
    const auto& event = event_of(program, lifetime);
    auto& generation =
        found[program.lines.of(event.stack)][program.steps.first_after(lifetime.first)];
    const auto name = name_in_model(name_of(program, lifetime));
    generation.made.push_back(&lifetime);
    generation.parameters.emplace(name, event.requested_bytes);
    if (!name.empty()) generation.names.insert(name);
  }
  return found;
}

// Whether the two are of different models: a model has each of its names once. Where no names are
// known, equal sizes say so.
bool are_models(const Generation& one, const Generation& other) {
  return one.parameters == other.parameters ||
         std::ranges::any_of(one.names,
                             [&](const std::string& name) { return other.names.contains(name); });
}

// The earlier ones that are of other models than the newest.
std::vector<const Generation*> earlier_models(const Generations& generations) {
  const auto newest = std::prev(generations.end());
  std::vector<const Generation*> found;
  for (auto one = generations.begin(); one != newest; ++one)
    if (are_models(one->second, newest->second)) found.push_back(&one->second);
  return found;
}

// The state of optimizers that is alive at the peak, by the parameter's name and its size. Where
// two tensors have all of that in common, nobody knows whose they are.
class States {
 public:
  explicit States(const Program& program) : program_(program) {
    for (const auto& lifetime : program.lifetimes) {
      if (!is_own(program, lifetime) || !is_at_peak(program, lifetime)) continue;
      if (lifetime.category == Category::kOptimizerState) states_.push_back(&lifetime);
      if (lifetime.category == Category::kParameter) parameters_.push_back(&lifetime);
    }
  }

  // Of what is made after these parameters, and before `end`; nullopt: not known.
  std::optional<std::int64_t> of(const Generation& generation, std::uint64_t end) const {
    const auto begin = generation.made.front()->first;
    std::set<Parameter> own;
    for (const auto* one : generation.made) own.insert(parameter(*one));
    std::size_t alike = 0;
    for (const auto* one : parameters_)
      if (one->first >= begin && one->first < end && own.contains(parameter(*one))) ++alike;
    if (alike > own.size()) return std::nullopt;
    std::int64_t bytes = 0;
    std::set<std::string> seen;
    for (const auto* state : states_) {
      const auto& name = name_of(program_, *state);
      const auto dot = name.rfind('.');
      if (state->first < begin || state->first >= end || dot == std::string::npos ||
          !own.contains({name.substr(0, dot), event_of(program_, *state).requested_bytes}))
        continue;
      if (!seen.insert(name).second) return std::nullopt;
      bytes += event_of(program_, *state).block_bytes;
    }
    return bytes;
  }

 private:
  Parameter parameter(const Lifetime& lifetime) const {
    return {name_of(program_, lifetime), event_of(program_, lifetime).requested_bytes};
  }

  const Program& program_;
  std::vector<const Lifetime*> states_, parameters_;
};

// Of all of them; 0 where it is not known of one.
std::int64_t states_of(const States& states, const Generations& generations,
                       const std::vector<const Generation*>& kept) {
  std::int64_t bytes = 0;
  for (auto one = generations.begin(); std::next(one) != generations.end(); ++one) {
    if (std::ranges::find(kept, &one->second) == kept.end()) continue;
    const auto of_one = states.of(one->second, std::next(one)->second.made.front()->first);
    if (!of_one) return 0;
    bytes += *of_one;
  }
  return bytes;
}

}  // namespace

std::vector<Finding> find_models(const Program& program) {
  constexpr std::size_t kLeastModels = 3;
  const States states(program);
  ByLine earlier(program);
  std::map<std::size_t, std::size_t> models;        // by line
  std::map<std::size_t, std::int64_t> state_bytes;  // by line
  for (const auto& [line, generations] : generations_by_line(program)) {
    const auto kept = earlier_models(generations);
    models[line] = kept.size() + 1;
    if (models[line] < kLeastModels) continue;
    for (const auto* generation : kept)
      for (const auto* one : generation->made) earlier.add(*one);
    state_bytes[line] = states_of(states, generations, kept);
  }
  std::vector<Finding> findings;
  for (const auto line : earlier.largest(least(program))) {
    const auto count = models[line];
    const auto bytes = earlier.of(line) + state_bytes[line];
    const auto with_state = state_bytes[line] > 0 ? ", and " + in_words(state_bytes[line]) +
                                                        " is optimizer state of theirs"
                                                  : "";
    findings.push_back(
        {FindingKind::kModels,
         fmt::format(
             "Parameters made {} times at {}, with steps between, are all alive: the {} earlier "
             "sets hold {}{}{}; are they still needed, or does a list, a closure or a cycle keep "
             "them?",
             count, earlier.in_words(line), count - 1, in_words(earlier.of(line)),
             of_the_peak(program), with_state),
         bytes, bytes, program.lines.at(line)});
  }
  return findings;
}

}  // namespace peakbench::analysis
