#include "reports/analysis/peak_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "reports/analysis/findings.h"
#include "reports/analysis/line_names.h"
#include "reports/analysis/strategies_against.h"
#include "reports/analysis/why.h"
#include "trace/lines.h"
#include "trace/maxima.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace peakbench::analysis {
namespace {

constexpr std::size_t kLines = 8, kLinesInShort = 3, kLinesInJson = 32;
constexpr double kLeastNamed = 0.01;  // of the peak, of a line or category in one line of text

using ByCategory = std::array<std::int64_t, trace::kCategoryCount>;

// Those of less than `least` bytes are summed.
std::string categories_text(const ByCategory& bytes, std::int64_t least = 1) {
  std::array<std::size_t, trace::kCategoryCount> order{};
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::string text;
  std::int64_t others = 0;
  for (const auto i : order) {
    if (bytes[i] < least) others += std::max<std::int64_t>(bytes[i], 0);
    if (bytes[i] < least) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        trace::to_string(static_cast<trace::Category>(i)), in_words(bytes[i]));
  }
  std::ranges::replace(text, '_', ' ');
  return others == 0 ? text : fmt::format("{}, others {}", text, in_words(others));
}

std::string lines_text(const std::vector<trace::LineShare>& lines, const LineNames& names,
                       std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < most; ++i)
    text +=
        fmt::format("  {:>10}  {:>5.1f}%  {}  {}\n", in_words(lines[i].bytes), 100 * lines[i].share,
                    names.in_words(lines[i].line), categories_text(lines[i].by_category));
  if (lines.size() <= most) return text;
  std::int64_t rest = 0;
  for (std::size_t i = most; i < lines.size(); ++i) rest += lines[i].bytes;
  const auto more = lines.size() - most;
  return text + fmt::format("  {:>10}          {} more line{}\n", in_words(rest), more,
                            more == 1 ? "" : "s");
}

// One line that calls a library's training says little: then those that it calls, too.
std::string lines_of(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                     std::uint64_t event, const LineNames& names, std::size_t most) {
  const auto lines = trace::lines_at(trace, lifetimes, event);
  const auto own = lines_text(lines, names, most);
  const auto called = called_lines(trace, lifetimes, event, lines);
  return called.empty() ? own
                        : own + "\nBy line of what it calls:\n" + lines_text(called, names, most);
}

std::size_t largest_of(const std::array<std::int64_t, trace::kCategoryCount>& bytes) {
  return static_cast<std::size_t>(std::ranges::max_element(bytes) - bytes.begin());
}

std::string shares_text(const std::vector<trace::LineShare>& lines, const LineNames& names) {
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kLinesInShort; ++i) {
    if (lines[i].share < kLeastNamed) break;
    std::string category =
        trace::to_string(static_cast<trace::Category>(largest_of(lines[i].by_category)));
    std::ranges::replace(category, '_', ' ');
    text += fmt::format("{}{} {:.0f}% ({})", text.empty() ? "" : ", ", names.line(lines[i].line),
                        100 * lines[i].share, category);
  }
  return text;
}

std::string fills_text(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                       std::uint64_t event) {
  const LineNames names(trace);
  const auto lines = trace::lines_at(trace, lifetimes, event);
  if (trace.frames.empty() || lines.empty()) return "";
  const auto called = called_lines(trace, lifetimes, event, lines);
  return shares_text(lines, names) +
         (called.empty() ? "" : "; by the line of a library: " + shares_text(called, names));
}

// What looks like a mistake; that memory ran out is none.
std::string finding_text(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes) {
  for (const auto& sentence : sentences_of(why(trace, lifetimes)))
    if (!sentence.kind.empty() && sentence.kind != to_string(FindingKind::kOutOfMemory))
      return fmt::format("{} ({})", sentence.text, page_of(sentence.kind));
  return "";
}

// Those that the program went on after; the allocator tries more than once.
std::string caught_text(const trace::Trace& trace, const LineNames& names, bool ended_of_it) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> lines;
  const auto count = trace.events.size() - (ended_of_it && !trace.events.empty() ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& event = trace.events[i];
    if (event.kind != trace::EventKind::kOutOfMemory) continue;
    const auto line = fmt::format("  {} asked for at {}{}\n", in_words(event.requested_bytes),
                                  names.in_words(trace::own_line(trace, event.stack)),
                                  when(trace, ", ", event.phase, event.step));
    if (lines.empty() || lines.back() != line) lines.push_back(line);
  }
  std::string text = lines.empty() ? "" : "\nRan out of memory and continued:\n";
  for (std::size_t i = 0; i < lines.size() && i < kMost; ++i) text += lines[i];
  if (lines.size() > kMost) text += fmt::format("  and {} times more\n", lines.size() - kMost);
  return text;
}

std::string ranges_text(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                        std::uint64_t event) {
  const auto ranges = trace::range_peaks(trace, lifetimes, event);
  if (ranges.empty()) return "";
  std::string text =
      "\nBy your range (its own peak; what was allocated in it and is alive at the peak):\n";
  for (std::size_t i = 0; i < ranges.size() && i < kLines; ++i)
    text += fmt::format("  {:>10}  {:>10}  {}\n", in_words(ranges[i].highest_bytes),
                        in_words(ranges[i].alive_bytes), trace::range_name(trace, ranges[i].range));
  if (ranges.size() > kLines)
    text += fmt::format("                          {} more ranges\n", ranges.size() - kLines);
  return text;
}

std::string pools_text(const trace::Trace& trace) {
  const auto pools = trace::private_pools(trace);
  if (pools.private_bytes == 0) return "";
  return fmt::format(
      "Private pools (of CUDA graphs, or torch.cuda.MemPool) had up to {} reserved, of {} in all "
      "then: they serve nothing else.\n",
      in_words(pools.private_bytes), in_words(pools.reserved_bytes));
}

nlohmann::ordered_json line_json(const trace::LineShare& share) {
  nlohmann::ordered_json categories = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < trace::kCategoryCount; ++i)
    if (share.by_category[i] > 0)
      categories[trace::to_string(static_cast<trace::Category>(i))] = share.by_category[i];
  const auto& line = share.line;
  nlohmann::ordered_json place = nullptr;
  if (!line.file.empty()) place = line.file;
  return {{"file", place},
          {"line", line.line},
          {"function", line.function},
          {"bytes", share.bytes},
          {"by_category", categories}};
}

nlohmann::ordered_json lines_json(const std::vector<trace::LineShare>& lines) {
  auto list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < lines.size() && i < kLinesInJson; ++i)
    list.push_back(line_json(lines[i]));
  return list;
}

}  // namespace

std::string peak_text(const trace::Trace& trace, bool ended_of_it) {
  const auto lifetimes = trace::lifetimes(trace);
  const auto peak = trace::find_peak(trace, lifetimes);
  const LineNames names(trace);
  const auto told = why(trace, lifetimes);
  std::string text;
  for (const auto& sentence : sentences_of(told)) text += sentence.text + "\n";
  if (text.empty()) text = level_text(trace, peak) + ".\n";
  text += "\nBy category: " + categories_text(peak.by_category) + ".\n";
  text += pools_text(trace);
  const auto at_peak = lines_of(trace, lifetimes, peak.event, names, kLines);
  text += "\nWhat fills it, by line of your code:\n" + at_peak;
  text += ranges_text(trace, lifetimes, peak.event);
  if (ended_of_it && !trace.events.empty())
    if (const auto then = lines_of(trace, lifetimes, trace.events.size() - 1, names, kLines);
        then != at_peak)
      text += "\nWhat filled the card then, by line of your code:\n" + then;
  return text + caught_text(trace, names, ended_of_it);
}

std::string peak_in_short(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                          const Teller& teller) {
  const auto of = teller.name.empty()
                      ? ""
                      : fmt::format(" of {}, the largest of {}", teller.name, teller.processes);
  const auto told = [&](const char* what, const std::string& when, std::uint64_t event) {
    const auto categories = trace::by_category(trace::breakdown_at(trace, lifetimes, event));
    return fmt::format("{}{} ({}): {}.\n", what, of, when, categories_text(categories)) +
           lines_of(trace, lifetimes, event, LineNames(trace), kLinesInShort);
  };
  // A program that ended of it asks what was there then, which may be less than its peak, or as
  // much of something else.
  if (!trace.events.empty() && trace.events.back().kind == trace::EventKind::kOutOfMemory) {
    const auto& last = trace.events.back();
    return told("What filled the card when memory ran out", when(last.phase, last.step),
                trace.events.size() - 1);
  }
  const auto peak = trace::find_peak(trace, lifetimes);
  return told("What fills the peak", when(peak.phase, peak.step), peak.event);
}

PeakBrief peak_brief(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes) {
  if (trace.events.empty()) return {};
  PeakBrief brief;
  auto event = trace.events.size() - 1;
  const auto& last = trace.events.back();
  if (last.kind == trace::EventKind::kOutOfMemory) {
    const auto line = trace::own_line(trace, last.stack);
    brief.when =
        fmt::format("memory ran out{}: {} asked for{}", when(trace, " ", last.phase, last.step),
                    in_words(last.requested_bytes),
                    line.file.empty() ? "" : " at " + LineNames(trace).in_words(line));
  } else {
    const auto peak = trace::find_peak(trace, lifetimes);
    event = peak.event;
    brief.when = fmt::format("{} allocated by tensors{}", in_words(peak.allocated_bytes),
                             when(trace, ", ", peak.phase, peak.step));
  }
  const auto bytes = trace::by_category(trace::breakdown_at(trace, lifetimes, event));
  const auto all = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
  brief.categories =
      categories_text(bytes, 1 + static_cast<std::int64_t>(kLeastNamed * static_cast<double>(all)));
  brief.fills = fills_text(trace, lifetimes, event);
  brief.advice = finding_text(trace, lifetimes);
  if (brief.advice.empty()) brief.advice = remedy_for_program(trace, lifetimes, event);
  return brief;
}

nlohmann::ordered_json peak_json(const trace::Trace& trace,
                                 const std::vector<trace::Lifetime>& lifetimes) {
  const auto memory = trace::summarise(trace, lifetimes);
  const auto peak = trace::find_peak(trace, lifetimes);
  const auto own = trace::lines_at(trace, lifetimes, peak.event);
  return {{"peak_allocated_bytes", memory.peak_allocated_bytes},
          {"peak_phase", memory.peak_phase},
          {"peak_step", std::max<std::int64_t>(memory.peak_step, 0)},
          {"peak_when", when(peak.phase, peak.step)},
          {"at_peak", memory.at_peak},
          {"lines", lines_json(own)},
          {"called_lines", lines_json(called_lines(trace, lifetimes, peak.event, own))}};
}

}  // namespace peakbench::analysis
