// Texts that plugins write, kept short.
#pragma once

#include <nlohmann/json.hpp>

namespace peakbench {

// Every string in `json`, at any depth, by bounded(); names of fields stay.
void bound_texts(nlohmann::json& json);

}  // namespace peakbench
