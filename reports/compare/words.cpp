#include "reports/compare/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "reports/run/explain.h"

namespace peakbench::compare {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::string some(std::size_t number, const char* what) {
  return number == 0 ? "" : fmt::format("{} {}", number, what);
}

// `unit` is "pairs" or "processes".
std::string counted(std::int64_t number, const std::string& unit) {
  if (number != 1) return fmt::format("{} {}", number, unit);
  return unit == "pairs" ? "1 pair" : "1 process";
}

void add(std::string& list, const std::string& item) {
  if (!item.empty()) list += (list.empty() ? "" : ", ") + item;
}

// Bytes of blocks, or for a figure of what was asked for those.
struct Counted {
  bool is_requested;
  std::int64_t of(const analysis::Cause& cause) const {
    return is_requested ? cause.requested_difference() : cause.block_difference();
  }
  std::int64_t of(const analysis::CategoryCauses& category) const {
    return is_requested ? category.requested_difference : category.block_difference;
  }
};

std::string more_text(std::size_t count, std::int64_t bytes, const char* one, const char* several) {
  return fmt::format("{} in {} more {}", short_difference(bytes), count,
                     count == 1 ? one : several);
}

// What went the way of the change, the largest first, then what went the other way.
template <typename Item>
std::vector<const Item*> in_direction(const std::vector<Item>& items, Counted counted,
                                      std::int64_t change) {
  std::vector<const Item*> order;
  for (const auto& item : items)
    if (counted.of(item) != 0) order.push_back(&item);
  std::stable_partition(order.begin(), order.end(),
                        [&](const Item* item) { return (counted.of(*item) > 0) == (change > 0); });
  return order;
}

std::string category_text(const analysis::CategoryCauses& category, Counted counted) {
  constexpr std::size_t kCausesNamed = 2;
  auto text = fmt::format("{} {}: ", reports::printable(reports::category_label(category.category)),
                          short_difference(counted.of(category)));
  const auto causes = in_direction(category.causes, counted, counted.of(category));
  if (causes.size() == 1) return text + reports::cause_text(*causes.front());
  std::int64_t rest = counted.of(category);
  const auto named = std::min(kCausesNamed, causes.size());
  for (std::size_t i = 0; i < named; ++i) {
    const auto& cause = *causes[i];
    rest -= counted.of(cause);
    text += fmt::format("{}{} ({})", i == 0 ? "" : ", ", reports::cause_text(cause),
                        short_difference(counted.of(cause)));
  }
  const auto others = causes.size() - named;
  return others == 0 ? text : text + ", " + more_text(others, rest, "place", "places");
}

// What a figure's change has beyond the parts, which are those at the maximum of allocated bytes.
std::string beyond_parts(std::int64_t bytes, const Measure& measure) {
  if (bytes == 0) return "";
  if (measure.figure == "reserved") return short_difference(bytes) + " reserved and not allocated";
  return short_difference(bytes) + " asked for at another moment than the most allocated";
}

// "in optimizer step", "in forward (in BASE in optimizer step)".
std::string phase_text(const PhaseGrowth& growth) {
  const auto in = [](const std::string& phase) {
    return "in " + reports::printable(reports::phase_label(phase));
  };
  return in(growth.phase) +
         (growth.base_phase == growth.phase ? "" : " (in BASE " + in(growth.base_phase) + ")");
}

}  // namespace

std::string short_difference(std::int64_t bytes) {
  if (bytes == 0) return "0";
  if (std::llabs(bytes) < kMiB)
    return reports::signed_grouped(bytes) + (std::llabs(bytes) == 1 ? " byte" : " bytes");
  return reports::signed_gib(bytes) + " GiB";
}

std::string difference_text(std::int64_t bytes) {
  if (std::llabs(bytes) < kMiB) return short_difference(bytes);
  return fmt::format("{} ({} bytes)", short_difference(bytes), reports::signed_grouped(bytes));
}

std::string bytes_text(std::int64_t bytes) {
  return fmt::format("{} GiB ({} bytes)", reports::gib(bytes), reports::grouped(bytes));
}

std::string named(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : reports::printable(text);
}

std::string change_text(const Change& change) {
  // A revision in full says no more than its beginning.
  const auto shown = [](const std::string& value) {
    constexpr std::size_t kRevision = 40, kShown = 12;
    const bool is_revision = value.size() == kRevision &&
                             value.find_first_not_of("0123456789abcdef") == std::string::npos;
    return value.empty() ? std::string("(none)")
                         : reports::printable(is_revision ? value.substr(0, kShown) : value);
  };
  auto text = fmt::format("{}: {} -> {}", reports::printable(reports::spaced(change.name)),
                          shown(change.base), shown(change.now));
  if (change.cases > 0) text += " (" + reports::count_of(change.cases, "case") + ")";
  return text;
}

std::string figure_name(const Measure& measure) {
  const auto where = measure.where == "peak" ? measure.where : reports::phase_label(measure.where);
  return reports::printable(measure.space.empty() ? where : where + " of " + measure.space) + " " +
         measure.figure;
}

std::string figure_text(const Measure& measure) {
  return fmt::format("{} {} ({} -> {} bytes)", figure_name(measure),
                     short_difference(measure.now - measure.base), reports::grouped(measure.base),
                     reports::grouped(measure.now));
}

std::string where_text(const PhaseGrowth& growth, bool at_peak) {
  if (at_peak) return "at the peak, " + phase_text(growth);
  return "at the maximum of " + reports::printable(reports::phase_label(growth.phase));
}

std::string explanation_text(const PhaseGrowth& growth, const Measure& measure) {
  constexpr std::size_t kCategoriesNamed = 3;
  const Counted counted{measure.figure == "requested"};
  const auto told = in_direction(growth.causes, counted, measure.now - measure.base);
  std::string text;
  const auto say = [&](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : "; ") + part;
  };
  std::int64_t rest = measure.now - measure.base, hidden = 0;
  for (std::size_t i = 0; i < told.size(); ++i) {
    rest -= counted.of(*told[i]);
    if (i < kCategoriesNamed)
      say(category_text(*told[i], counted));
    else
      hidden += counted.of(*told[i]);
  }
  if (told.size() > kCategoriesNamed)
    say(more_text(told.size() - kCategoriesNamed, hidden, "category", "categories"));
  say(beyond_parts(rest, measure));
  return measure.where == "peak" ? phase_text(growth) + ": " + text : text;
}

std::string line_text(const LineChange& change) {
  const auto line = short_difference(change.now - change.base) + " at " + change.line;
  const bool is_named = !change.function.empty() && change.function.front() != '<';
  return line + (is_named ? " (" + change.function + ")" : "");
}

std::string part_text(const Growth& part) {
  return fmt::format("{}, allocated in {}, in {}, by {}",
                     reports::printable(reports::category_label(part.category)),
                     reports::printable(reports::phase_label(part.allocated_in)),
                     named(part.module, "no module"), named(part.op, "no operator"));
}

std::string ratio_text(double ratio) { return reports::signed_percent(ratio - 1) + "%"; }

std::string speed_text(const SpeedDifference& difference, const char* unit) {
  std::string text = difference.ratio > 0 ? ratio_text(difference.ratio) : "";
  if (difference.low > 0)
    text += fmt::format(" ({} to {})", ratio_text(difference.low), ratio_text(difference.high));
  if (difference.samples > 0)
    text += ", " + counted(static_cast<std::int64_t>(difference.samples), unit);
  if (difference.direction != Direction::kUnknown) return text;
  text += (text.empty() ? "" : "; ") + difference.reason;
  if (difference.more) {
    text += fmt::format("; about {} more needed", counted(*difference.more, unit));
  } else if (difference.samples >= statistics::kLeastSamples) {
    text += fmt::format("; over 1000 {} needed", unit);
  }
  return text;
}

std::string verdict_text(const VerdictChange& change) {
  const auto what = change.direction == Direction::kWorse    ? "the figures can be relied on less"
                    : change.direction == Direction::kBetter ? "the figures can be relied on more"
                                                             : "the figures are as before";
  const auto reason = change.reason.empty() ? "" : ": " + change.reason;
  return fmt::format("{}: {}, was {}{}", what, change.now, change.base, reason);
}

std::string state_text(const CaseComparison& one) {
  const auto status = [](const std::string& text) {
    return reports::printable(reports::spaced(text));
  };
  switch (one.state) {
    case CaseState::kCompared:
      return to_string(one.memory);
    case CaseState::kFailed:
      return "failed: " + status(one.now_status);
    case CaseState::kStillFailed:
      return one.base_status == one.now_status
                 ? "still " + status(one.now_status)
                 : fmt::format("{}, was {}", status(one.now_status), status(one.base_status));
    case CaseState::kRecovered:
      return fmt::format("ok, was {}", status(one.base_status));
    case CaseState::kRefused:
      return "not compared";
    case CaseState::kMissing:
      return one.now_status.empty() ? "missing" : "not measured";
    case CaseState::kNew:
      break;
  }
  return to_string(one.state);
}

std::string states_text(const Comparison& comparison) {
  std::string text;
  for (const auto& [state, words] : {std::pair{CaseState::kFailed, "failed"},
                                     {CaseState::kStillFailed, "still failing"},
                                     {CaseState::kRecovered, "recovered"},
                                     {CaseState::kMissing, "missing"},
                                     {CaseState::kNew, "new"},
                                     {CaseState::kRefused, "not compared"}})
    add(text, some(count(comparison, state), words));
  return text;
}

std::string summary_text(const Comparison& comparison) {
  std::string memory, speed;
  for (const auto direction : {Direction::kWorse, Direction::kBetter})
    add(memory, some(count_memory(comparison, direction), to_string(direction)));
  add(memory, some(count_memory(comparison, Direction::kSame), "the same"));
  for (const auto direction :
       {Direction::kWorse, Direction::kBetter, Direction::kSame, Direction::kUnknown})
    add(speed, some(count_speed(comparison, direction),
                    direction == Direction::kSame ? "the same" : to_string(direction)));
  const auto others = states_text(comparison);
  const auto doubted = static_cast<std::size_t>(
      std::ranges::count_if(comparison.cases, [](const CaseComparison& one) {
        return one.verdict && one.verdict->direction == Direction::kWorse;
      }));
  std::string text = "memory: " + (memory.empty() ? "nothing compared" : memory);
  if (!speed.empty()) text += "; step time: " + speed;
  if (doubted > 0) text += fmt::format("; figures: {} can be relied on less", doubted);
  if (!others.empty()) text += "; cases: " + others;
  return text;
}

}  // namespace peakbench::compare
