#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/columns.h"
#include "planning/manifest.h"
#include "planning/plan.h"
#include "records/case.h"

namespace peakbench::cli {

// "[ 3/12] ok  5.670 GiB  812.3 ms/step  1.23 samples/s  ID", a second line with the reason where
// it is not ok. Wider than `columns`, the id has a line of its own.
std::string case_row(std::size_t place, std::size_t count, const records::CaseResult& result,
                     int columns = kUnbroken);

// "[ 3/12]".
std::string counter(std::size_t place, std::size_t count);

// What fits in `width` columns, the middle left out ("vit-l-16/...b1").
std::string elided(const std::string& text, std::size_t width);

// "12 s", "3 min 05 s", "2 h 14 min".
std::string duration(std::int64_t seconds);

// What `peakbench run --dry-run` shows. A line a case: its number and id; below it, why it will not
// run. `folders`: of additional plugins, printed at the end if there are any.
std::string plan_as_text(const planning::Plan& plan,
                         const std::vector<planning::Folder>& folders = {});

// {"reference", "plugin_folders": [{"path", "named_by"}],
// "cases": [{"id", "slug", "model", "strategies", ..., "decided", "reason"}]},
// `decided` null for a case that would run.
std::string plan_as_json(const planning::Plan& plan, const std::vector<planning::Folder>& folders);

}  // namespace peakbench::cli
