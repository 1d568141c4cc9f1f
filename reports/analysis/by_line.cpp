#include "reports/analysis/by_line.h"

#include <algorithm>

namespace peakbench::analysis {

const trace::Event& event_of(const Program& program, const trace::Lifetime& lifetime) {
  return program.trace.events[lifetime.first];
}

const std::string& name_of(const Program& program, const trace::Lifetime& lifetime) {
  static const std::string none;
  if (lifetime.name == trace::kNone) return none;
  return program.trace.names[static_cast<std::size_t>(lifetime.name)].name;
}

bool is_own(const Program& program, const trace::Lifetime& lifetime) {
  return event_of(program, lifetime).space == program.trace.own_space;
}

bool is_at_peak(const Program& program, const trace::Lifetime& lifetime) {
  return lifetime.first <= program.peak.event && lifetime.last > program.peak.event;
}

std::int64_t least(const Program& program, std::int64_t share) {
  return program.peak.allocated_bytes / share;
}

std::string of_the_peak(const Program& program) {
  return " of the peak's " + in_words(program.peak.allocated_bytes);
}

ByLine::ByLine(const Program& program) : program_(program), lines_(program.lines.size()) {}

void ByLine::add(const trace::Lifetime& lifetime, int sign) {
  const auto& event = event_of(program_, lifetime);
  auto& line = lines_[program_.lines.of(event.stack)];
  line.bytes += sign * event.block_bytes;
  total_ += sign * event.block_bytes;
  if (sign < 0) return;
  if (is_at_peak(program_, lifetime)) {
    line.at_peak += event.block_bytes;
    at_peak_ += event.block_bytes;
  }
  if (event.block_bytes <= line.most) return;
  line.most = event.block_bytes;
  line.stack = event.stack;
}

std::vector<std::size_t> ByLine::largest(std::int64_t least) const {
  constexpr std::size_t kMostLines = 3;
  std::vector<std::size_t> found;
  for (std::size_t i = 1; i < lines_.size(); ++i)
    if (of(i) > 0 && of(i) >= least) found.push_back(i);
  std::stable_sort(found.begin(), found.end(),
                   [this](std::size_t a, std::size_t b) { return of(a) > of(b); });
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
