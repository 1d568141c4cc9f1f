// Parts of a comparison's JSON that others have, too.
#pragma once

#include <nlohmann/json.hpp>

#include "reports/compare/compare.h"

namespace peakbench::compare {

// verdict, samples, ratio, low, high, more_samples, reason.
nlohmann::ordered_json to_json(const SpeedDifference& difference);
nlohmann::ordered_json to_json(const Speed& speed);

}  // namespace peakbench::compare
