// The axes of a series as data: a JSON object by the axes' names, so that a new axis needs no new
// column. For the room's own use.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "result/setting.h"

namespace peakbench::history {

// What the case id says of each axis; integers as numbers: {"batch_size":1,"device":"cpu",...}.
std::string axes_text(const result::Setting& setting);
// Of the text with the case that it belongs to.
std::int64_t axes_sum(const std::string& case_id, const std::string& text);
// {} where they are not as they were filed.
nlohmann::json axes_from(const std::string& case_id, const std::string& text, std::int64_t sum);

}  // namespace peakbench::history
