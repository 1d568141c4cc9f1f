// What `peakbench run --dry-run` shows: the cases of a plan.
#pragma once

#include <string>

#include "plan/plan.h"

namespace peakbench::cli {

// A line a case: its number and id; below it, why it will not run.
std::string plan_as_text(const plan::Plan& plan);

// {"reference", "cases": [{"id", "slug", "model", "strategies", ..., "decided", "reason"}]},
// `decided` null for a case that would run.
std::string plan_as_json(const plan::Plan& plan);

}  // namespace peakbench::cli
