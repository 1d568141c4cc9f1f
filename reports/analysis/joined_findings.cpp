// Buffers that torch.cat makes anew, larger each time.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "reports/analysis/by_line.h"

namespace peakbench::analysis {
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
  constexpr const char* kJoined = "joined buffer ";  // as program/joined.h says it
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
         "; is it meant to have no limit?";
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

}  // namespace peakbench::analysis
