#include "reports/compare/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"

namespace peakbench::compare {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::string plus(std::int64_t bytes) { return bytes > 0 ? "+" : ""; }

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

}  // namespace

std::string short_difference(std::int64_t bytes) {
  if (bytes == 0) return "0";
  if (std::llabs(bytes) < kMiB)
    return plus(bytes) + reports::grouped(bytes) + (std::llabs(bytes) == 1 ? " byte" : " bytes");
  return reports::signed_gib(bytes) + " GiB";
}

std::string difference_text(std::int64_t bytes) {
  if (std::llabs(bytes) < kMiB) return short_difference(bytes);
  return fmt::format("{} ({}{} bytes)", short_difference(bytes), plus(bytes),
                     reports::grouped(bytes));
}

std::string bytes_text(std::int64_t bytes) {
  return fmt::format("{} GiB ({} bytes)", reports::gib(bytes), reports::grouped(bytes));
}

std::string named(const std::string& text, const char* otherwise) {
  return text.empty() ? otherwise : reports::printable(text);
}

std::string line_text(const LineChange& change) {
  const auto line = short_difference(change.now - change.base) + " now at " + change.line;
  const bool is_named = !change.function.empty() && change.function.front() != '<';
  return line + (is_named ? " (" + change.function + ")" : "");
}

std::string part_text(const std::string& category, const std::string& allocated_in,
                      const std::string& module, const std::string& op) {
  return fmt::format("{}, allocated in {}, in {}, by {}",
                     reports::printable(reports::category_label(category)),
                     reports::printable(reports::phase_label(allocated_in)),
                     named(module, "no module"), named(op, "no operator"));
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

std::vector<Growth> largest_first(std::vector<Growth> parts) {
  const auto size = [](const Growth& part) {
    return std::pair(std::abs(part.block_bytes), std::abs(part.requested_bytes));
  };
  std::ranges::stable_sort(parts, std::ranges::greater(), size);
  return parts;
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
  std::string text = "memory: " + (memory.empty() ? "nothing compared" : memory);
  if (!speed.empty()) text += "; step time: " + speed;
  if (!others.empty()) text += "; cases: " + others;
  return text;
}

}  // namespace peakbench::compare
