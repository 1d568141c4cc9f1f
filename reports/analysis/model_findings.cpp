#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "reports/analysis/findings.h"

namespace peakbench::analysis {
// Buffers that torch.cat makes anew, larger each time.

namespace {

using trace::Lifetime;

// The states of one buffer, in the order in which they were made.
struct Buffer {
  std::vector<const Lifetime*> states = {};
  // Of each state, the place of its step among those that count; one more behind the last update.
  std::vector<std::size_t> steps = {};
};

// The event that begins the last update: no step begins behind it.
std::uint64_t last_update_of(const trace::Trace& trace) {
  auto event = trace.events.size();
  while (event > 0 && trace.events[event - 1].phase != trace::Phase::kOptimizerStep) --event;
  return event;
}

std::map<std::string, Buffer> buffers_of(const Program& program) {
  constexpr const char* kJoined = "joined buffer ";  // as programs/inferred_names.h says it
  const auto last_update = last_update_of(program.trace);
  std::map<std::string, Buffer> buffers;
  for (const auto& lifetime : program.lifetimes) {
    const auto& name = name_of(program, lifetime);
    const auto step = program.steps.index_of(event_of(program, lifetime).step);
    if (!step || !is_own(program, lifetime) || !name.starts_with(kJoined)) continue;
    buffers[name].states.push_back(&lifetime);
    const bool is_behind = lifetime.first >= last_update && *step + 1 == program.steps.count();
    buffers[name].steps.push_back(*step + (is_behind ? 1 : 0));
  }
  return buffers;
}

// How much larger the last state of each step is than that of the step before that made one.
std::vector<std::int64_t> increases_of(const Program& program, const Buffer& buffer) {
  std::vector<std::int64_t> sizes, increases;
  for (std::size_t i = 0; i < buffer.states.size(); ++i)
    if (i + 1 == buffer.states.size() || buffer.steps[i] != buffer.steps[i + 1])
      sizes.push_back(event_of(program, *buffer.states[i]).requested_bytes);
  for (std::size_t i = 1; i < sizes.size(); ++i) increases.push_back(sizes[i] - sizes[i - 1]);
  return increases;
}

// The most steps from one state to the next.
std::size_t longest_gap(const Buffer& buffer) {
  std::size_t longest = 0;
  for (std::size_t i = 1; i < buffer.steps.size(); ++i)
    longest = std::max(longest, buffer.steps[i] - buffer.steps[i - 1]);
  return longest;
}

// One that stopped growing, or was emptied before, has a limit.
bool grows_to_the_end(const Program& program, const Buffer& buffer) {
  constexpr std::size_t kLeastSteps = 4;
  const std::set<std::size_t> steps(buffer.steps.begin(), buffer.steps.end());
  if (steps.size() < kLeastSteps) return false;
  if (buffer.steps.back() + longest_gap(buffer) + 1 < program.steps.count()) return false;
  return std::ranges::all_of(increases_of(program, buffer),
                             [](std::int64_t increase) { return increase > 0; });
}

// Lines where one buffer ended before another one began.
std::set<std::size_t> lines_that_begin_anew(const Program& program,
                                            const std::map<std::string, Buffer>& buffers) {
  std::map<std::size_t, std::vector<const Buffer*>> by_line;
  for (const auto& [name, buffer] : buffers)
    by_line[program.lines.of(event_of(program, *buffer.states.back()).stack)].push_back(&buffer);
  std::set<std::size_t> lines;
  for (const auto& [line, of_line] : by_line)
    for (const auto* one : of_line)
      for (const auto* other : of_line)
        if (one->states.back()->first < other->states.front()->first) lines.insert(line);
  return lines;
}

std::string sentence_of(const Program& program, const Buffer& buffer, const ByLine& made,
                        std::int64_t at_peak) {
  const auto increases = increases_of(program, buffer);
  const auto [least, most] = std::ranges::minmax(increases);
  auto text = fmt::format("A buffer grows by {}{}{}", in_words(least),
                          in_words(least) == in_words(most) ? "" : " to " + in_words(most),
                          longest_gap(buffer) == 1 ? " a step" : " now and then");
  if (at_peak > 0) text += ", to " + in_words(at_peak) + of_the_peak(program);
  const auto at_once = std::ranges::count_if(
      buffer.states, [&](const Lifetime* state) { return is_at_peak(program, *state); });
  if (at_once > 1) text += ", its last state and the new one together";
  return text + ": torch.cat makes it anew at " + made.in_words(made.largest(1).front()) +
         "; is it meant to have no limit? Cut it to its last rows: torch.cat([buffer, "
         "rows])[-limit:].";
}

}  // namespace

std::vector<Finding> find_joined(const Program& program) {
  const auto buffers = buffers_of(program);
  const auto begun_anew = lines_that_begin_anew(program, buffers);
  std::vector<Finding> findings;
  for (const auto& [name, buffer] : buffers) {
    if (!grows_to_the_end(program, buffer)) continue;
    ByLine made(program);
    std::int64_t at_peak = 0;
    for (const auto* state : buffer.states) {
      made.add(*state);
      if (is_at_peak(program, *state)) at_peak += event_of(program, *state).block_bytes;
    }
    const auto line = made.largest(1);
    const auto& first = event_of(program, *buffer.states.front());
    const auto& last = event_of(program, *buffer.states.back());
    const auto grown = last.requested_bytes - first.requested_bytes;
    if (line.empty() || begun_anew.contains(line.front()) || grown < least(program)) continue;
    findings.push_back({FindingKind::kGrowth, sentence_of(program, buffer, made, at_peak),
                        grown / static_cast<std::int64_t>(buffer.states.size() - 1), at_peak,
                        program.lines.at(line.front())});
  }
  return findings;
}

// Models of earlier rounds that are still alive.

namespace {

using trace::Category;

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
             "them? `del` the model and its optimizer, then gc.collect().",
             count, earlier.in_words(line), count - 1, in_words(earlier.of(line)),
             of_the_peak(program), with_state),
         bytes, bytes, program.lines.at(line)});
  }
  return findings;
}

}  // namespace peakbench::analysis
