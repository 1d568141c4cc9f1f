// Rows of JSON as CSV, for spreadsheets and data frames.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace peakbench {

// As RFC 4180 has it, with a newline for its line breaks. `rows` is an array of objects; a column a
// name, in the order in which they first come up: `memory.peak_allocated_bytes` of an object within
// an object. Null is empty, a list of plain values has spaces between them, any other list is JSON.
// Empty where there are no rows.
std::string csv_text(const nlohmann::ordered_json& rows);

}  // namespace peakbench
