#include "reports/compare/overlay.h"

#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/words.h"

namespace peakbench::compare {
namespace {

using reports::CaseAnatomy;
using reports::tenths;
using trace::PhaseSpan;

constexpr double kBox = 1000;

bool same_order(const std::vector<PhaseSpan>& base, const std::vector<PhaseSpan>& now) {
  return std::equal(base.begin(), base.end(), now.begin(), now.end(),
                    [](const PhaseSpan& a, const PhaseSpan& b) {
                      return a.phase == b.phase && a.step == b.step;
                    });
}

// Where an event stands, 0 to kBox: every span as wide as every other, or by its number alone.
class Axis {
 public:
  Axis(const CaseAnatomy& anatomy, bool by_span) : anatomy_(anatomy), by_span_(by_span) {}

  std::string x(std::uint64_t event) const {
    if (!by_span_)
      return tenths(kBox * static_cast<double>(event) /
                    static_cast<double>(std::max<std::uint64_t>(anatomy_.events, 1)));
    const auto& spans = anatomy_.spans;
    const auto after =
        std::upper_bound(spans.begin(), spans.end(), event,
                         [](std::uint64_t at, const PhaseSpan& span) { return at < span.last; });
    if (after == spans.end()) return tenths(kBox);
    const auto part = static_cast<double>(event - std::min(event, after->first)) /
                      static_cast<double>(std::max<std::uint64_t>(after->last - after->first, 1));
    return tenths(kBox * (static_cast<double>(after - spans.begin()) + part) /
                  static_cast<double>(spans.size()));
  }

 private:
  const CaseAnatomy& anatomy_;
  bool by_span_;
};

std::string y(std::int64_t bytes, std::int64_t highest) {
  return tenths(kBox - kBox * static_cast<double>(bytes) / static_cast<double>(highest));
}

std::string outline(const CaseAnatomy& anatomy, const Axis& axis, std::int64_t highest) {
  std::string path, last;
  for (const auto& sample : anatomy.timeline.samples) {
    const auto height = y(sample.allocated_bytes, highest), place = axis.x(sample.first);
    path += (path.empty() ? "M" + place + "," + height : "H" + place);
    if (height != last && !last.empty()) path += "V" + height;
    last = height;
  }
  return path + "H" + axis.x(anatomy.timeline.last);
}

std::vector<OverlayBandView> bands(const CaseAnatomy& anatomy, const Axis& axis) {
  std::vector<OverlayBandView> list;
  for (const auto& span : anatomy.spans) {
    const auto from = axis.x(span.first), to = axis.x(span.last);
    list.push_back({.phase = to_string(span.phase),
                    .label = reports::phase_label(to_string(span.phase)),
                    .step = span.step == trace::kNone ? "" : std::to_string(span.step + 1),
                    .x = from,
                    .width = tenths(std::stod(to) - std::stod(from))});
  }
  return list;
}

MarkView mark(const CaseAnatomy& anatomy, const Axis& axis, std::int64_t highest) {
  const auto& peak = anatomy.anatomy.peak;
  return {.x = axis.x(peak.event),
          .y = y(peak.allocated_bytes, highest),
          .gib = reports::gib(peak.allocated_bytes),
          .bytes = reports::grouped(peak.allocated_bytes)};
}

}  // namespace

std::optional<OverlayView> overlay_view(const CaseAnatomy& base, const CaseAnatomy& now) {
  if (!base.known() || !now.known() || base.timeline.samples.empty() ||
      now.timeline.samples.empty())
    return std::nullopt;
  constexpr double kAir = 1.08;  // above the highest point
  const auto highest = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(
             kAir * static_cast<double>(std::max(base.anatomy.peak.allocated_bytes,
                                                 now.anatomy.peak.allocated_bytes))));
  const bool aligned = same_order(base.spans, now.spans);
  const Axis of_base(base, aligned), of_now(now, aligned);
  const auto top = outline(now, of_now, highest);
  return OverlayView{.aligned = aligned,
                     .bands = bands(now, of_now),
                     .base = outline(base, of_base, highest),
                     .now = top,
                     .area = top + "V1000H0Z",
                     .base_peak = mark(base, of_base, highest),
                     .now_peak = mark(now, of_now, highest),
                     .base_events = reports::grouped(base.events),
                     .now_events = reports::grouped(now.events),
                     .axis_gib = reports::gib(highest)};
}

}  // namespace peakbench::compare
