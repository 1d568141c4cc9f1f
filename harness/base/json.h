#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace peakbench {

// JSON as files and terminals have it.

// Indented by two, with a newline at the end. Invalid UTF-8 becomes U+FFFD.
template <class Json>  // nlohmann::json or nlohmann::ordered_json
std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// In one line, without a newline.
template <class Json>
std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The only reader of JSON of other origin: run files, manifests, cards, lines of a history.

// Ours have fewer than ten levels; what follows the levels one by one (copying, writing) needs
// stack for each.
inline constexpr int kMostJsonLevels = 100;

// `seen`: a callback of nlohmann::json's parser. Throws RunFileError with the problem, its line and
// column, and the field as a JSON pointer if there is one. Problems: empty, cut short, not JSON, a
// number beyond double precision (1e999), more than kMostJsonLevels levels. The caller adds the
// path.
nlohmann::json parse_json(std::string_view text,
                          const nlohmann::json::parser_callback_t& seen = nullptr);

// Texts that plugins write, kept short.

// Every string in `json`, at any depth, by bounded(); names of fields stay.
void bound_texts(nlohmann::json& json);

// Rows of JSON as CSV, for spreadsheets and data frames.

// As RFC 4180 has it, with a newline for its line breaks. `rows` is an array of objects; a column a
// name, in the order in which they first come up: `memory.peak_allocated_bytes` of an object within
// an object. Null is empty, a list of plain values has spaces between them, any other list is JSON.
// Empty where there are no rows.
std::string csv_text(const nlohmann::ordered_json& rows);

}  // namespace peakbench
