// What `peakbench run --dry-run` shows: the cases of a plan.
#pragma once

#include <string>
#include <vector>

#include "manifest/manifest.h"
#include "plan/plan.h"

namespace peakbench::cli {

// A line a case: its number and id; below it, why it will not run.
// `folders`: of plugins, beside the program's own; said at the end where there are some.
std::string plan_as_text(const plan::Plan& plan, const std::vector<manifest::Folder>& folders = {});

// {"reference", "plugin_folders": [{"path", "named_by"}],
// "cases": [{"id", "slug", "model", "strategies", ..., "decided", "reason"}]},
// `decided` null for a case that would run.
std::string plan_as_json(const plan::Plan& plan, const std::vector<manifest::Folder>& folders);

}  // namespace peakbench::cli
