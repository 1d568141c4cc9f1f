#include "reports/history/series_axes.h"

#include "errors/errors.h"
#include "json/parse_json.h"
#include "reports/history/packed.h"
#include "result/axes.h"

namespace peakbench::history {
namespace {

using nlohmann::json;

std::string dumped(const json& axes) {
  return axes.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string axes_text(const result::Setting& setting) {
  return dumped(result::plain_values(setting));
}

std::int64_t axes_sum(const std::string& case_id, const std::string& text) {
  return checksum(case_id + "\n" + text);
}

json axes_from(const std::string& case_id, const std::string& text, std::int64_t sum) {
  if (axes_sum(case_id, text) != sum) return json::object();
  try {
    auto axes = parse_json(text);
    return axes.is_object() ? axes : json::object();
  } catch (const RunFileError&) {
    return json::object();
  }
}

}  // namespace peakbench::history
