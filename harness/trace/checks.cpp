#include "trace/checks.h"

#include <fmt/format.h>

#include <limits>

#include "trace/columns.h"
#include "trace/trace_file.h"

namespace peakbench::trace {
namespace {

// All that is ever asked for in one trace: sums and differences of these hold in 64 bits.
constexpr std::int64_t kMostBytes = std::numeric_limits<std::int64_t>::max() / 4;

void check_words(const std::vector<std::string>& words, const char* what) {
  if (words.size() > kMostWords) throw Damage{fmt::format("more than {} {}", kMostWords, what)};
  for (const auto& word : words)
    if (word.size() > static_cast<std::size_t>(kMostTextBytes))
      throw Damage{fmt::format("a text of more than {} bytes", kMostTextBytes)};
}

}  // namespace

void EventChecks::add(const Event& event) {
  const bool failed = event.kind == EventKind::kOutOfMemory;  // its size was never given
  count_bytes(event.block_bytes);
  if (!failed) count_bytes(event.requested_bytes);
  const auto size = static_cast<std::uint64_t>(event.block_bytes);
  if (!failed && event.address + size < event.address)
    throw Damage{fmt::format("a block of {} bytes at {:#x}", event.block_bytes, event.address)};
  if (event.step != kNone) follow(event.step, event.step);
}

void EventChecks::append(const EventChecks& next) {
  if (next.first_step_ != kNone) follow(next.first_step_, next.last_step_);
  count_bytes(next.bytes_);
}

void EventChecks::count_bytes(std::int64_t count) {
  if (count < 0 || count > kMostBytes - bytes_)
    throw Damage{"the sizes add up to more than any card has"};
  bytes_ += count;
}

void EventChecks::follow(std::int32_t first, std::int32_t last) {
  if (first < last_step_) throw Damage{fmt::format("step {} after step {}", first, last_step_)};
  if (first_step_ == kNone) first_step_ = first;
  last_step_ = last;
}

void ScopeChecks::add(const ScopeMark& mark) {
  if (mark.event < event_)
    throw Damage{fmt::format("before event {}, after one before event {}", mark.event, event_)};
  event_ = mark.event;
  if (mark.step != kNone) {
    if (mark.step < step_) throw Damage{fmt::format("step {} after step {}", mark.step, step_)};
    step_ = mark.step;
  }
  auto& open = open_[{mark.thread, mark.kind}];
  const bool has_no_end = mark.kind == ScopeKind::kPhase || mark.kind == ScopeKind::kModule;
  if (!mark.ends)
    ++open;
  else if (has_no_end || open-- == 0)
    throw Damage{"the end of what did not begin"};
}

std::string why_not_readable(const Trace& trace) {
  try {
    if (trace.spaces.size() > kMostSpaces)
      throw Damage{fmt::format("more than {} spaces", kMostSpaces)};
    if (trace.events.size() > static_cast<std::size_t>(kMostEvents))
      throw Damage{fmt::format("more than {} events", kMostEvents)};
    check_words(trace.spaces, "spaces");
    check_words(trace.modules, "modules");
    check_words(trace.operators, "operators");
    check_words(trace.files, "files");
    check_words(trace.functions, "functions");
    for (const auto& range : trace.ranges) check_words({range.name}, "ranges");
    for (const auto& name : trace.names) check_words({name.name, name.shape, name.dtype}, "names");
    EventChecks events;
    for (const auto& event : trace.events) events.add(event);
    ScopeChecks scopes;
    for (const auto& scope : trace.scopes) scopes.add(scope);
  } catch (const Damage& damage) {
    return damage.what;
  }
  return "";
}

}  // namespace peakbench::trace
