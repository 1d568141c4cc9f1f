#include "reports/analysis/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/numbers.h"

namespace peakbench::analysis {

Steps::Steps(const trace::Trace& trace) {
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto step = trace.events[i].step;
    if (step == trace::kNone || !trace::is_counted(trace, step)) continue;
    if (!numbers_.empty() && step <= numbers_.back()) continue;
    begins_.push_back(i);
    numbers_.push_back(step);
  }
}

std::optional<std::size_t> Steps::index_of(std::int32_t step) const {
  const auto at = std::lower_bound(numbers_.begin(), numbers_.end(), step);
  if (at == numbers_.end() || *at != step) return std::nullopt;
  return static_cast<std::size_t>(at - numbers_.begin());
}

std::size_t Steps::first_after(std::uint64_t event) const {
  return static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), event) -
                                  begins_.begin());
}

namespace {

using trace::Category;
using trace::Lifetime;
using trace::Phase;

// Whether it may pile up: not what stays for the whole of a training. A gradient without a name is
// no parameter's.
bool may_pile_up(const Program& program, const Lifetime& lifetime) {
  switch (lifetime.category) {
    case Category::kGradient:
      return name_of(program, lifetime).empty();
    case Category::kParameter:
    case Category::kOptimizerState:
    case Category::kBuffer:
    case Category::kWorkspace:
    case Category::kGraphPool:
      return false;
    default:
      return is_own(program, lifetime) && lifetime.first >= program.first_call;
  }
}

// The place of the step that made it among those that count.
std::optional<std::size_t> made_in(const Program& program, const Lifetime& lifetime) {
  return program.steps.index_of(event_of(program, lifetime).step);
}

}  // namespace

std::string in_words(std::int64_t bytes) { return size_text(static_cast<std::uint64_t>(bytes)); }

namespace {

// What is alive when the last step begins of steps before the one before it, by step and by line.
// What a step hands to the next one (its last output, the batch that was loaded ahead) is no part
// of it, however large it grows.
struct Growth {
  explicit Growth(const Program& program) : lines(program), of_steps(program.steps.count() - 2) {}

  ByLine lines;
  std::vector<std::int64_t> of_steps;
  std::map<std::size_t, std::set<std::size_t>> made_in = {};  // by line: the steps
  std::int64_t of_forward = 0, freed_by_backward = 0;         // bytes that forwards made
  std::size_t tensors_of_forward = 0;

  // Where graphs are kept, backwards free nothing of what forwards left for them.
  bool is_a_graph() const {
    return tensors_of_forward >= 2 * (of_steps.size() - 1) && freed_by_backward * 10 < of_forward;
  }
};

Growth growth_of(const Program& program) {
  Growth growth(program);
  for (const auto& lifetime : program.lifetimes) {
    const auto step = made_in(program, lifetime);
    if (!step || *step >= growth.of_steps.size() || !may_pile_up(program, lifetime)) continue;
    const auto& event = event_of(program, lifetime);
    const bool is_kept = program.steps.is_alive(lifetime, program.steps.count() - 1);
    const bool of_forward = *step > 0 && event.phase == Phase::kForward;
    const bool is_freed_by_backward =
        lifetime.last < program.trace.events.size() &&
        program.trace.events[lifetime.last].phase == Phase::kBackward &&
        lifetime.category == Category::kActivation;
    if (of_forward && is_freed_by_backward) growth.freed_by_backward += event.block_bytes;
    if (!is_kept) continue;
    growth.of_steps[*step] += event.block_bytes;
    if (*step == 0) continue;  // what the first step makes may be for all of them
    growth.lines.add(lifetime);
    growth.made_in[program.lines.of(event.stack)].insert(*step);
    growth.of_forward += of_forward ? event.block_bytes : 0;
    growth.tensors_of_forward += of_forward ? 1 : 0;
  }
  return growth;
}

// What lines that add to it in every step hold at the peak.
std::int64_t at_peak_of(const Program& program, const std::set<std::size_t>& lines) {
  std::int64_t bytes = 0;
  for (const auto& lifetime : program.lifetimes) {
    const auto& event = event_of(program, lifetime);
    if (may_pile_up(program, lifetime) && is_at_peak(program, lifetime) &&
        (event.step < program.peak.step || lifetime.category == Category::kKept) &&
        lines.contains(program.lines.of(event.stack)))
      bytes += event.block_bytes;
  }
  return bytes;
}

// "24.0 MiB of it made at train.py:8 and 8.0 MiB at train.py:9"; without the first size where it is
// all of it.
std::string made_at(const Growth& growth, const std::vector<std::size_t>& lines,
                    std::int64_t a_step) {
  const auto steps = static_cast<std::int64_t>(growth.of_steps.size()) - 1;
  const auto of = [&](std::size_t line) {
    return in_words(std::max<std::int64_t>(1, growth.lines.of(line) / steps));
  };
  const bool is_all = of(lines.front()) == in_words(a_step);
  auto text = (is_all ? "" : of(lines.front()) + " of it ") + "made at " +
              growth.lines.in_words(lines.front());
  if (!is_all && lines.size() > 1 &&
      growth.lines.of(lines[1]) * 4 >= growth.lines.of(lines.front()))
    text += " and " + of(lines[1]) + " at " + growth.lines.in_words(lines[1]);
  return text;
}

}  // namespace

std::vector<Finding> find_growth(const Program& program) {
  constexpr std::size_t kLeastSteps = 5;
  if (program.steps.count() < kLeastSteps) return {};
  const auto grown = growth_of(program);
  std::vector<std::int64_t> increases(grown.of_steps.begin() + 1, grown.of_steps.end());
  std::ranges::sort(increases);
  const auto steps = static_cast<std::int64_t>(increases.size());
  const auto a_step = increases[increases.size() / 2];  // one step may keep much for itself
  if (increases.front() <= 0 || increases.front() * steps < least(program)) return {};
  std::set<std::size_t> in_every_step;
  for (const auto& [line, made] : grown.made_in)
    if (made.size() >= increases.size()) in_every_step.insert(line);
  Finding finding{FindingKind::kGrowth, "", a_step, at_peak_of(program, in_every_step), {}};
  finding.sentence = fmt::format("Memory grows by {} a step", in_words(a_step));
  if (finding.at_peak_bytes > 0)
    finding.sentence += ", to " + in_words(finding.at_peak_bytes) + of_the_peak(program);
  const auto largest = grown.lines.largest(1);
  if (!largest.empty()) {
    finding.line = program.lines.at(largest.front());
    finding.sentence += ": " + made_at(grown, largest, a_step);
  }
  finding.sentence +=
      grown.is_a_graph()
          ? "; the graph of every step is kept: is a loss or an output added up or stored without "
            "loss.item() or output.detach()?"
          : "; something keeps it: a list that grows? Store x.detach().cpu(), or clear the list.";
  return {finding};
}

namespace {

// How often a line left something that is alive then, and what it looks like.
struct Times {
  std::set<std::int32_t> steps;
  bool with_saves = true;   // always where a checkpoint was saved
  bool is_of_state = true;  // always of a size that a parameter, a buffer or a state has
  bool is_a_store = false;  // of which some were let go before
  bool grows() const { return steps.size() >= 3; }  // fewer are copies of the best and the last
  bool copies_state() const { return with_saves && is_of_state; }
};

}  // namespace

std::set<std::int64_t> sizes_of_state(const Program& program) {
  std::set<std::int64_t> sizes;
  for (const auto& lifetime : program.lifetimes)
    if (lifetime.category == Category::kParameter || lifetime.category == Category::kBuffer ||
        lifetime.category == Category::kOptimizerState)
      sizes.insert(event_of(program, lifetime).requested_bytes);
  return sizes;
}

namespace {

std::set<std::int32_t> saving_steps(const trace::Trace& trace) {
  std::set<std::int32_t> steps;
  for (const auto& mark : trace.scopes)
    if (mark.kind == trace::ScopeKind::kPhase && mark.phase == Phase::kCheckpoint)
      steps.insert(mark.step);
  return steps;
}

// What is alive when a step begins of steps before the last one; the step where it is most.
class Left {
 public:
  explicit Left(const Program& program) : program_(program) {
    std::vector<std::int64_t> changes(program.steps.count() + 1);
    for (const auto& lifetime : program.lifetimes) {
      const auto step = made_in(program, lifetime);
      if (!step || *step + 2 >= program.steps.count() || !may_pile_up(program, lifetime)) continue;
      if (!program.steps.is_alive(lifetime, *step + 2)) continue;
      made_.push_back(&lifetime);
      changes[*step + 2] += event_of(program, lifetime).block_bytes;
      changes[program.steps.first_after(lifetime.last)] -= event_of(program, lifetime).block_bytes;
    }
    std::int64_t level = 0, highest = 0;
    for (std::size_t i = 0; i < program.steps.count(); ++i) {
      level += changes[i];
      if (level < highest || level == 0) continue;
      highest = level;
      most_ = i;
    }
  }

  const std::vector<const Lifetime*>& made() const { return made_; }
  bool is_there(const Lifetime& lifetime) const {
    return *made_in(program_, lifetime) + 2 <= most_ && program_.steps.is_alive(lifetime, most_);
  }
  bool is_gone(const Lifetime& lifetime) const {
    return lifetime.first < program_.steps.begin(most_);
  }

 private:
  const Program& program_;
  std::vector<const Lifetime*> made_;
  std::size_t most_ = 0;
};

std::string sentence_of_kept(const Program& program, const ByLine& found, std::size_t line,
                             std::int64_t at_peak, const Times& times) {
  const auto count = static_cast<std::int64_t>(times.steps.size());
  return fmt::format(
      "Memory grows by {} {}, to {}{}, made at {}: {}", in_words(found.of(line) / count),
      times.copies_state() ? "with each checkpoint" : "now and then", in_words(at_peak),
      of_the_peak(program), found.in_words(line),
      times.copies_state()
          ? "is a copy of the state kept on the card? Copy it to the host: value.cpu()."
          : "something keeps it: `del` what is no longer needed, or store x.cpu().");
}

}  // namespace

std::vector<Finding> find_kept(const Program& program, const std::vector<Finding>& grown) {
  const Left left(program);
  if (left.made().empty()) return {};
  const auto saving = saving_steps(program.trace);
  const auto sizes = sizes_of_state(program);
  ByLine found(program);
  std::map<std::size_t, Times> times;
  for (const auto* lifetime : left.made()) {
    const auto& event = event_of(program, *lifetime);
    auto& line = times[program.lines.of(event.stack)];
    if (!left.is_there(*lifetime)) {
      line.is_a_store = line.is_a_store || left.is_gone(*lifetime);
      continue;
    }
    found.add(*lifetime);
    line.steps.insert(event.step);
    line.with_saves = line.with_saves && saving.contains(event.step);
    line.is_of_state = line.is_of_state && sizes.contains(event.requested_bytes);
  }
  std::vector<Finding> findings;
  for (const auto line : found.largest(least(program))) {
    const bool in_every_step = times[line].steps.size() + 3 >= program.steps.count();
    if (times[line].is_a_store || !times[line].grows() || (in_every_step && !grown.empty()))
      continue;
    const auto at_peak = at_peak_of(program, {line});
    findings.push_back({FindingKind::kKept,
                        sentence_of_kept(program, found, line, at_peak, times[line]),
                        found.of(line), at_peak, program.lines.at(line)});
  }
  return findings;
}

const trace::Event& event_of(const Program& program, const Lifetime& lifetime) {
  return program.trace.events[lifetime.first];
}

const std::string& name_of(const Program& program, const Lifetime& lifetime) {
  static const std::string none;
  if (lifetime.name == trace::kNone) return none;
  return program.trace.names[static_cast<std::size_t>(lifetime.name)].name;
}

bool is_own(const Program& program, const Lifetime& lifetime) {
  return event_of(program, lifetime).space == program.trace.own_space;
}

bool is_at_peak(const Program& program, const Lifetime& lifetime) {
  return lifetime.first <= program.peak.event && lifetime.last > program.peak.event;
}

std::int64_t least(const Program& program, std::int64_t share) {
  return program.peak.allocated_bytes / share;
}

std::string of_the_peak(const Program& program) {
  return " of the peak's " + in_words(program.peak.allocated_bytes);
}

ByLine::ByLine(const Program& program) : program_(program), lines_(program.lines.size()) {}

void ByLine::add(const Lifetime& lifetime) {
  const auto& event = event_of(program_, lifetime);
  auto& line = lines_[program_.lines.of(event.stack)];
  line.bytes += event.block_bytes;
  total_ += event.block_bytes;
  if (event.block_bytes <= line.most) return;
  line.most = event.block_bytes;
  line.stack = event.stack;
}

std::vector<std::size_t> ByLine::largest(std::int64_t least) const {
  constexpr std::size_t kMostLines = 3;
  std::vector<std::size_t> found;
  for (std::size_t i = 1; i < lines_.size(); ++i)
    if (of(i) > 0 && of(i) >= least) found.push_back(i);
  std::ranges::stable_sort(found, [this](std::size_t a, std::size_t b) { return of(a) > of(b); });
  if (found.size() > kMostLines) found.resize(kMostLines);
  return found;
}

std::string ByLine::in_words(std::size_t line) const {
  const auto& made = program_.lines.at(line);
  const auto caller = trace::calling_line(program_.trace, lines_[line].stack);
  const bool says_more =  // than a comprehension in its own line
      !caller.file.empty() && (caller.file != made.file || caller.line != made.line);
  return program_.names.in_words(made) +
         (says_more ? ", called at " + program_.names.in_words(caller) : "");
}

}  // namespace peakbench::analysis
