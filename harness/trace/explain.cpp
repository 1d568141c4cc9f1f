#include "trace/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

#include "trace/ledger.h"

namespace peakbench::trace {
namespace {

std::string word(const std::vector<std::string>& words, std::int32_t index) {
  return index == kNone ? std::string() : words[static_cast<std::size_t>(index)];
}

// Scalars are allocated all the time: the event that reaches the maximum is often one of them.
constexpr std::int64_t kWeight = 1000;

const Event* weighty_allocation(const Trace& trace, const std::vector<Lifetime>& lifetimes,
                                const Moment& moment, int space) {
  const auto after = std::upper_bound(
      lifetimes.begin(), lifetimes.end(), moment.event,
      [](std::uint64_t event, const Lifetime& lifetime) { return event < lifetime.first; });
  for (auto at = std::make_reverse_iterator(after); at != lifetimes.rend(); ++at) {
    const auto& alloc = trace.events[at->first];
    if (alloc.phase != moment.phase || alloc.step != moment.step) return nullptr;
    if (alloc.space == space && at->last > moment.event &&
        alloc.block_bytes >= moment.allocated_bytes / kWeight)
      return &alloc;
  }
  return nullptr;
}

Moment moment(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event,
              PeakPlace place, int space) {
  Moment found;
  found.event = event;
  found.phase = place.phase;
  found.step = place.step;
  found.parts = parts_at(trace, lifetimes, event, space);
  found.allocated_bytes = total(found.parts);
  if (const auto* alloc = weighty_allocation(trace, lifetimes, found, space)) {
    found.in_update = alloc->in_update;
    found.module = word(trace.modules, alloc->module);
    found.op = word(trace.operators, alloc->op);
  }
  return found;
}

// The highest event of each phase; the level that a phase begins with is its predecessor's event.
struct Highest {
  std::int64_t bytes = -1;
  std::uint64_t event = 0;
  std::int32_t step = kNone;

  void look(std::int64_t level, std::uint64_t at, std::int32_t of_step) {
    if (level > bytes) *this = {level, at, of_step};
  }
};

// ---- words ----

constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

// Three significant digits of GiB; bytes below one MiB.
std::string size(std::int64_t bytes) {
  if (std::llabs(bytes) < 1 << 20) return fmt::format("{} bytes", bytes);
  const auto gib = static_cast<double>(bytes) / kBytesPerGib;
  const auto digits = 2 - static_cast<int>(std::floor(std::log10(std::fabs(gib))));
  return fmt::format("{:.{}f} GiB", gib, std::clamp(digits, 0, 5));
}

std::string signed_size(std::int64_t bytes) {
  return fmt::format("{}{}", bytes > 0 ? "+" : "", size(bytes));
}

const char* spoken(Phase phase) {
  return phase == Phase::kOptimizerStep ? "the optimizer step"
         : phase == Phase::kBuild       ? "the build"
                                        : to_string(phase);
}

std::string where(const Moment& moment) {
  std::string text = spoken(moment.phase);
  if (moment.in_update && moment.phase != Phase::kOptimizerStep)
    text += ", inside a parameter update";
  if (!moment.op.empty()) text += fmt::format(" ({})", moment.op);
  return text;
}

std::int64_t of_category(const Parts& parts, std::size_t category) {
  std::int64_t bytes = 0;
  for (const auto of_phase : parts[category]) bytes += of_phase;
  return bytes;
}

struct Change {
  Category category;
  std::int64_t bytes;
};

// What matters of the difference: one percent of the larger side, at most four categories.
std::vector<Change> changes(const Moment& from, const Moment& to) {
  std::vector<Change> found;
  const auto least = std::max(from.allocated_bytes, to.allocated_bytes) / 100;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const auto bytes = of_category(to.parts, i) - of_category(from.parts, i);
    if (bytes != 0 && std::llabs(bytes) >= least)
      found.push_back({static_cast<Category>(i), bytes});
  }
  std::stable_sort(found.begin(), found.end(), [](const Change& a, const Change& b) {
    return std::llabs(a.bytes) > std::llabs(b.bytes);
  });
  constexpr std::size_t kMost = 4;
  if (found.size() > kMost) found.resize(kMost);
  return found;
}

std::string list(const std::vector<Change>& changes) {
  std::string text;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0) text += i + 1 == changes.size() ? " and " : ", ";
    text += fmt::format("{} by {}", to_string(changes[i].category), signed_size(changes[i].bytes));
  }
  return text;
}

double percent(std::int64_t from, std::int64_t to) {
  return from == 0 ? 0.0 : 100.0 * static_cast<double>(to - from) / static_cast<double>(from);
}

const Moment* in_phase(const Anatomy& anatomy, Phase phase) {
  const auto& found = anatomy.phases[static_cast<std::size_t>(phase)];
  if (found) return &*found;
  return anatomy.peak.phase == phase ? &anatomy.peak : nullptr;
}

// A tenth of a percent is not a saving that anyone would use a strategy for.
bool same(std::int64_t from, std::int64_t to) { return std::fabs(percent(from, to)) < 0.1; }

// The other phase whose highest moment changes most, in words; empty where none falls.
std::string saved_elsewhere(const Anatomy& reference, const Anatomy& strategy,
                            const std::string& name) {
  const Moment* before = nullptr;
  const Moment* after = nullptr;
  for (const auto phase : {Phase::kForward, Phase::kBackward, Phase::kOptimizerStep}) {
    const auto* from = in_phase(reference, phase);
    const auto* to = in_phase(strategy, phase);
    if (!from || !to || phase == reference.peak.phase) continue;
    if (same(from->allocated_bytes, to->allocated_bytes)) continue;
    const auto saved = from->allocated_bytes - to->allocated_bytes;
    if (saved > 0 && (!before || saved > before->allocated_bytes - after->allocated_bytes)) {
      before = from;
      after = to;
    }
  }
  if (!before) return {};
  const auto what = changes(*before, *after);
  return fmt::format(" What {} saves is in {}, where the highest moment falls from {} to {}{}.",
                     name, spoken(before->phase), size(before->allocated_bytes),
                     size(after->allocated_bytes),
                     what.empty() ? "" : fmt::format(" ({})", list(what)));
}

std::string change_there(const Anatomy& reference, const Anatomy& strategy,
                         const std::string& name) {
  const auto* there = in_phase(strategy, reference.peak.phase);
  if (!there) return fmt::format(" With {}, nothing is allocated there.", name);
  const auto found = changes(reference.peak, *there);
  if (found.empty()) return fmt::format(" {} changes nothing of weight there.", name);
  return fmt::format(" There {} changes {}.", name, list(found));
}

std::string outcome(const Anatomy& reference, const Anatomy& strategy, const std::string& name) {
  const auto from = reference.peak.allocated_bytes, to = strategy.peak.allocated_bytes;
  const bool moved = reference.peak.phase != strategy.peak.phase;
  if (same(from, to))
    return fmt::format(" The peak stays at {} ({:+.2f}%), {}in {}.", size(to), percent(from, to),
                       moved ? "now " : "", where(strategy.peak)) +
           saved_elsewhere(reference, strategy, name);
  std::string text =
      fmt::format(" The peak {} {} ({:+.1f}%), {} {}", to < from ? "is now" : "rises to", size(to),
                  percent(from, to), moved ? "in" : "still in", where(strategy.peak));
  if (const auto* before = in_phase(reference, strategy.peak.phase); moved && before)
    text += fmt::format(", where the highest moment was {}", size(before->allocated_bytes));
  text += ".";
  constexpr double kLittle = -1.0;  // percent
  const bool little = to < from && percent(from, to) > kLittle;
  return little ? text + saved_elsewhere(reference, strategy, name) : text;
}

}  // namespace

Anatomy anatomy(const Trace& trace, const std::vector<Lifetime>& lifetimes, int space) {
  Anatomy found;
  if (trace.events.empty()) return found;
  const auto owners = lifetime_of_event(trace, lifetimes);
  Ledger ledger(trace, lifetimes, owners, space);
  std::array<Highest, kPhaseCount> highest;
  for (std::uint64_t i = 0; i < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    auto& phase = highest[static_cast<std::size_t>(event.phase)];
    const bool counts = event.step != kNone;
    if (counts && i > 0) phase.look(ledger.allocated_bytes(), i - 1, event.step);
    ledger.take(i);
    if (counts) phase.look(ledger.allocated_bytes(), i, event.step);
  }
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    if (highest[i].bytes >= 0)
      found.phases[i] = moment(trace, lifetimes, highest[i].event,
                               {static_cast<Phase>(i), highest[i].step}, space);
  const auto peak = find_peak(trace, lifetimes, space);
  found.peak = moment(trace, lifetimes, peak.event, place_of(trace, peak), space);
  return found;
}

std::string explain(const Anatomy& reference, const Anatomy& strategy,
                    const std::string& reference_name, const std::string& strategy_name) {
  return fmt::format("The peak of {} is {}, in {}.", reference_name,
                     size(reference.peak.allocated_bytes), where(reference.peak)) +
         change_there(reference, strategy, strategy_name) +
         outcome(reference, strategy, strategy_name);
}

}  // namespace peakbench::trace
