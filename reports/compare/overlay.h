// Two runs' memory drawn on one axis. For this module alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/trace_view.h"

namespace peakbench::compare {

struct OverlayBandView {
  PEAKBENCH_VIEW(text(phase, "build, forward, backward, optimizer_step"),
                 text(label, "In words"),
                 text(step, "1-based; empty while building"),
                 text(x, "Where it begins"),
                 text(width, "How wide it is"));
};

struct MarkView {
  PEAKBENCH_VIEW(text(x, "Its place"),
                 text(y, "Its height"),
                 text(gib, "GiB"),
                 text(bytes, "The exact count"));
};

struct OverlayView {
  PEAKBENCH_VIEW(flag(aligned, "The same phase of the same step stands at the same place"),
                 list(OverlayBandView, bands, "NEW's phases in order"),
                 text(base, "An SVG path: BASE's allocated bytes"),
                 text(now, "An SVG path: NEW's allocated bytes"),
                 text(area, "All below NEW's"),
                 object(MarkView, base_peak, "BASE's peak"),
                 object(MarkView, now_peak, "NEW's peak"),
                 text(base_events, "How many events BASE has"),
                 text(now_events, "How many events NEW has"),
                 text(axis_gib, "GiB at the top of the box"));
};

// In a box 1000 wide and high, the same phase of the same step at the same place, however many
// events it took. Runs whose phases do not follow in the same order are laid over each other from
// first to last event. nullopt where either has no timeline.
std::optional<OverlayView> overlay_view(const reports::CaseAnatomy& base,
                                        const reports::CaseAnatomy& now);

}  // namespace peakbench::compare
