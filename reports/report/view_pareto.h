// Memory against throughput: points, the Pareto front, ticks; everything placed 0 to 1, the
// template has the sizes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/report/figures.h"
#include "reports/report/group.h"

namespace peakbench::reports {

struct ParetoPointView {
  std::string number, strategy, short_name, mark, beside, position, x, y, gib, rate;
  bool on_front = false, is_reference = false;

  FieldValues fields() const {
    return {{"number", number, "The row's number"},
            {"strategy", strategy, "The stack"},
            {"short", short_name, "The stack and its mark, cut to fit a drawing"},
            {"mark", mark,
             "What to know before choosing it: `claimed`, `trains differently`, `not as "
             "promised`; else empty"},
            {"beside", beside, "What it takes beside the device's memory, in words"},
            {"position", position, "0-based, among the points"},
            {"x", x, "Throughput, 0 to 1"},
            {"y", y, "Peak memory, 0 to 1"},
            {"gib", gib, "Peak memory"},
            {"rate", rate, "Throughput, in `unit`"},
            {"on_front", on_front,
             "No other case is both smaller and faster; never one whose promise is broken"},
            {"is_reference", is_reference, "The reference"}};
  }
};

struct CornerView {
  std::string x, y;

  FieldValues fields() const { return {{"x", x, "0 to 1"}, {"y", y, "0 to 1"}}; }
};

struct ParetoView {
  std::vector<ParetoPointView> points;
  std::vector<CornerView> front;
  std::vector<TickView> x_ticks, y_ticks;
  std::string unit, extra_points;
  bool has_claimed = false, has_broken = false;

  FieldValues fields() const {
    return {{"points", points, "One a case with both figures"},
            {"front", front, "Corners of the Pareto front, from left to right"},
            {"x_ticks", x_ticks, "Throughput"},
            {"y_ticks", y_ticks, "Peak memory in GiB"},
            {"unit", unit, "samples/s or tokens/s"},
            {"extra_points", extra_points, "How many points beyond twelve"},
            {"has_claimed", has_claimed, "Some point's promise is claimed, not checked"},
            {"has_broken", has_broken, "Some point's promise is broken"}};
  }
};

std::optional<ParetoView> pareto_view(const Group& group);  // nullopt with fewer than two points

}  // namespace peakbench::reports
