// Two runs' memory drawn on one axis. For this module alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/trace_view.h"

namespace peakbench::compare {

using reports::FieldValues;

struct OverlayBandView {
  std::string phase, label, step, x, width;

  FieldValues fields() const {
    return {{"phase", phase, "build, forward, backward, optimizer_step"},
            {"label", label, "In words"},
            {"step", step, "1-based; empty while building"},
            {"x", x, "Where it begins"},
            {"width", width, "How wide it is"}};
  }
};

struct MarkView {
  std::string x, y, gib, bytes;

  FieldValues fields() const {
    return {{"x", x, "Its place"},
            {"y", y, "Its height"},
            {"gib", gib, "GiB"},
            {"bytes", bytes, "The exact count"}};
  }
};

struct OverlayView {
  bool aligned = false;
  std::vector<OverlayBandView> bands;
  std::string base, now, area;
  MarkView base_peak, now_peak;
  std::string base_events, now_events, axis_gib;

  FieldValues fields() const {
    return {{"aligned", aligned, "The same phase of the same step stands at the same place"},
            {"bands", bands, "NEW's phases in order"},
            {"base", base, "An SVG path: BASE's allocated bytes"},
            {"now", now, "An SVG path: NEW's allocated bytes"},
            {"area", area, "All below NEW's"},
            {"base_peak", base_peak, "BASE's peak"},
            {"now_peak", now_peak, "NEW's peak"},
            {"base_events", base_events, "How many events BASE has"},
            {"now_events", now_events, "How many events NEW has"},
            {"axis_gib", axis_gib, "GiB at the top of the box"}};
  }
};

// In a box 1000 wide and high, the same phase of the same step at the same place, however many
// events it took. Runs whose phases do not follow in the same order are laid over each other from
// first to last event. nullopt where either has no timeline.
std::optional<OverlayView> overlay_view(const reports::CaseAnatomy& base,
                                        const reports::CaseAnatomy& now);

}  // namespace peakbench::compare
