// The figures of a run that a plugin's author accepted, as NAME.expected.json has them. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "result/run.h"

namespace peakbench::cli {

// `libtorch`, its version, and `cases`: by id the status, the peaks and the bytes by category.
nlohmann::json figures_of(const result::Run& run);

// A sentence for each figure that differs and for each case that only one of them has. `accepted`
// has an object `cases`.
std::vector<std::string> differences(const nlohmann::json& accepted, const result::Run& run);

}  // namespace peakbench::cli
