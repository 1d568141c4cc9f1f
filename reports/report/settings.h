// What a heading says of a case beside its model, stack and device: dtype, batch size, ...
#pragma once

#include <nlohmann/json.hpp>

namespace peakbench::reports {

// A field each: name, label, value, text ("1,024 tokens a sample"), short ("sequence 1,024"); safe
// to show. `values` are those of result::plain_values.
nlohmann::json settings_view(const nlohmann::json& values);

}  // namespace peakbench::reports
