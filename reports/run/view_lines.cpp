#include "reports/run/view_lines.h"

#include <algorithm>
#include <deque>

#include "reports/analysis/line_names.h"
#include "reports/analysis/why.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/render/words.h"
#include "trace/timeline.h"

namespace peakbench::reports {
namespace {

using trace::Category;
using trace::LineShare;

constexpr std::size_t kLines = 20, kFrames = 3000;
constexpr int kLevels = 60;
constexpr double kLeastFrame = 0.002, kLeastLabel = 0.04;
constexpr const char* kNoStack = "no call stack";
const std::string kRepository = "https://github.com/peakbench/peakbench/blob/main/";

std::vector<SentenceView> sentences_view(const analysis::Why& why) {
  std::vector<SentenceView> list;
  for (const auto& sentence : analysis::sentences_of(why))
    list.push_back({printable(sentence.text), sentence.kind,
                    sentence.kind.empty() ? "" : kRepository + analysis::page_of(sentence.kind)});
  return list;
}

std::vector<LineCategoryView> categories_view(const LineShare& line, std::int64_t largest) {
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < trace::kCategoryCount; ++i)
    if (line.by_category[i] > 0) present.push_back(i);
  std::vector<LineCategoryView> list;
  for (const auto i : in_stacking_order(std::move(present))) {
    const std::string category = to_string(static_cast<Category>(i));
    const auto bytes = line.by_category[i];
    list.push_back({.label = category_label(category),
                    .colour = category_colour(category),
                    .gib = gib(bytes),
                    .bytes = grouped(bytes),
                    .width = fraction(ratio_of(bytes, largest)),
                    .first = list.empty()});
  }
  return list;
}

LineView line_view(const LineShare& line, const analysis::LineNames& names, std::int64_t largest) {
  const bool is_known = !line.line.file.empty();
  const auto number = line.line.line > 0 ? ":" + std::to_string(line.line.line) : "";
  return {.line = printable(is_known ? names.line(line.line) : kNoStack),
          .path = is_known ? printable(line.line.file + number) : "",
          .function = printable(line.line.function),
          .gib = gib(line.bytes),
          .bytes = grouped(line.bytes),
          .percent = percent(line.share),
          .count = grouped(line.allocations),
          .rest = false,
          .categories = categories_view(line, largest)};
}

LineShare sum(const std::vector<LineShare>& lines, std::size_t from) {
  LineShare all;
  for (std::size_t i = from; i < lines.size(); ++i) {
    all.bytes += lines[i].bytes;
    all.allocations += lines[i].allocations;
    all.share += lines[i].share;
    for (std::size_t k = 0; k < trace::kCategoryCount; ++k)
      all.by_category[k] += lines[i].by_category[k];
  }
  return all;
}

std::vector<LineView> table_view(const std::vector<LineShare>& lines,
                                 const analysis::LineNames& names) {
  const auto shown = lines.size() > kLines + 1 ? kLines : lines.size();
  const auto rest = sum(lines, shown);
  const auto largest = lines.empty() ? 0 : std::max(lines.front().bytes, rest.bytes);
  std::vector<LineView> list;
  for (std::size_t i = 0; i < shown; ++i) list.push_back(line_view(lines[i], names, largest));
  if (shown == lines.size()) return list;
  list.push_back(line_view(rest, names, largest));
  list.back().line = grouped(lines.size() - shown) + " more lines";
  list.back().rest = true;
  return list;
}

void add_ranges(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                std::uint64_t event, std::int64_t peak, LinesView& view) {
  const auto ranges = trace::range_peaks(trace, lifetimes, event);
  const auto shown = std::min(ranges.size(), kLines);
  for (std::size_t i = 0; i < shown; ++i)
    view.ranges.push_back({.name = printable(trace::range_name(trace, ranges[i].range)),
                           .highest_gib = gib(ranges[i].highest_bytes),
                           .highest_bytes = grouped(ranges[i].highest_bytes),
                           .alive_gib = gib(ranges[i].alive_bytes),
                           .alive_bytes = grouped(ranges[i].alive_bytes),
                           .percent = percent(ratio_of(ranges[i].alive_bytes, peak))});
  view.has_ranges = shown > 0;
  if (ranges.size() > shown) view.more_ranges = grouped(ranges.size() - shown);
}

std::string pools_sentence(const trace::Trace& trace) {
  const auto pools = trace::private_pools(trace);
  if (pools.private_bytes == 0) return "";
  return "Private pools (of CUDA graphs, or torch.cuda.MemPool) had up to " +
         gib(pools.private_bytes) + " GiB reserved, of " + gib(pools.reserved_bytes) +
         " GiB in all then: they serve nothing else.";
}

// The tree of frames with what is alive below each.
class Flame {
 public:
  Flame(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
        std::uint64_t event, const analysis::LineNames& names)
      : trace_(trace), names_(names), bytes_(trace.frames.size()), inner_(trace.frames.size()) {
    for (const auto& lifetime : lifetimes) {
      if (lifetime.first > event) break;
      const auto& made = trace.events[lifetime.first];
      if (lifetime.last <= event || made.space != trace.own_space) continue;
      all_ += made.block_bytes;
      (made.stack == trace::kNone ? unknown_ : bytes_[index(made.stack)]) += made.block_bytes;
    }
    for (std::size_t i = trace.frames.size(); i-- > 0;) {  // callers come before what they call
      if (bytes_[i] == 0) continue;
      const auto parent = trace.frames[i].parent;
      (parent == trace::kNone ? outer_ : inner_[index(parent)]).push_back(i);
      if (parent != trace::kNone) bytes_[index(parent)] += bytes_[i];
    }
  }

  std::vector<FlameFrameView> frames(int& levels) {
    struct Place {
      std::vector<std::size_t>* frames;
      std::int64_t start;
      int level;
    };
    std::vector<FlameFrameView> list;
    std::deque<Place> open{{&outer_, 0, 0}};
    levels = 0;
    for (; !open.empty(); open.pop_front()) {
      auto [inside, start, level] = open.front();
      std::stable_sort(inside->begin(), inside->end(), [this](std::size_t a, std::size_t b) {
        return bytes_[a] != bytes_[b] ? bytes_[a] > bytes_[b] : a < b;
      });
      for (const auto frame : *inside) {
        const bool hidden = is_call_of_module(frame);
        if (ratio_of(bytes_[frame], all_) < kLeastFrame || level == kLevels ||
            list.size() == kFrames)
          break;
        if (!hidden) list.push_back(view(frame, start, level));
        if (!hidden) levels = std::max(levels, level + 1);
        open.push_back({&inner_[frame], start, level + (hidden ? 0 : 1)});
        start += bytes_[frame];
      }
    }
    if (ratio_of(unknown_, all_) >= kLeastFrame) {
      list.push_back(block(all_ - unknown_, unknown_, 0, kNoStack, kNoStack, "unknown"));
      levels = std::max(levels, 1);
    }
    return list;
  }

 private:
  static std::size_t index(std::int32_t frame) { return static_cast<std::size_t>(frame); }

  std::string text(const std::vector<std::string>& words, std::int32_t word) const {
    return word == trace::kNone ? "" : words[index(word)];
  }

  // Two frames of PyTorch's for every module, which say nothing.
  bool is_call_of_module(std::size_t frame) const {
    const auto function = text(trace_.functions, trace_.frames[frame].function);
    return (function == "_call_impl" || function == "_wrapped_call_impl") &&
           text(trace_.files, trace_.frames[frame].file).ends_with("torch/nn/modules/module.py");
  }

  FlameFrameView block(std::int64_t start, std::int64_t bytes, int level, const std::string& label,
                       const std::string& what, const char* kind) const {
    const auto width = ratio_of(bytes, all_);
    return {.x = fraction(ratio_of(start, all_)),
            .width = fraction(width),
            .level = std::to_string(level),
            .label = printable(label),
            .title = printable(what) + ": " + gib(bytes) + " GiB (" + grouped(bytes) + " bytes), " +
                     percent(width) + " % of the peak",
            .kind = kind,
            .has_label = width >= kLeastLabel};
  }

  FlameFrameView view(std::size_t frame, std::int64_t start, int level) const {
    const auto& at = trace_.frames[frame];
    const auto file = text(trace_.files, at.file), function = text(trace_.functions, at.function);
    const auto line = at.line > 0 ? ":" + std::to_string(at.line) : "";
    return block(start, bytes_[frame], level, function + " " + names_.file(file) + line,
                 function + ", " + file + line, trace::is_library_file(file) ? "library" : "own");
  }

  const trace::Trace& trace_;
  const analysis::LineNames& names_;
  std::vector<std::int64_t> bytes_;
  std::vector<std::vector<std::size_t>> inner_;
  std::vector<std::size_t> outer_;
  std::int64_t all_ = 0, unknown_ = 0;
};

}  // namespace

std::optional<LinesView> lines_view(const trace::Trace& trace,
                                    const std::vector<trace::Lifetime>& lifetimes,
                                    std::uint64_t event) {
  if (trace.frames.empty() || trace.events.empty()) return std::nullopt;
  const analysis::LineNames names(trace);
  const auto lines = trace::lines_at(trace, lifetimes, event);
  int levels = 0;
  LinesView view;
  const auto peak = sum(lines, 0).bytes;
  view.gib = gib(peak);
  add_ranges(trace, lifetimes, event, peak, view);
  view.pools = pools_sentence(trace);
  view.sentences = sentences_view(analysis::why(trace, lifetimes));
  view.lines = table_view(lines, names);
  view.called = table_view(analysis::called_lines(trace, lifetimes, event, lines), names);
  view.has_called = !view.called.empty();
  view.frames = Flame(trace, lifetimes, event, names).frames(levels);
  view.levels = std::to_string(levels);
  view.top = "0";
  return view;
}

}  // namespace peakbench::reports
