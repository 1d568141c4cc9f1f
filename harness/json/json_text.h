// JSON as files and terminals have it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace peakbench {

// Indented by two, with a newline at the end. Invalid UTF-8 becomes U+FFFD.
template <class Json>  // nlohmann::json or nlohmann::ordered_json
std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace peakbench
