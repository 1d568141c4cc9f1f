#include "reports/history/series_axes.h"

#include <vector>

#include "errors/errors.h"
#include "json/parse_json.h"
#include "reports/history/packed.h"
#include "result/axes.h"

namespace peakbench::history {
namespace {

using nlohmann::json;
using sqlite::Database;
using sqlite::DatabaseError;
using sqlite::Statement;

constexpr const char* kSeriesColumns =
    "SELECT id, case_id, model, strategy, device, dtype, batch_size, sequence_length FROM series";

struct Filled {
  std::int64_t series = 0, sum = 0;
  std::string text;
};

std::string dumped(const json& axes) {
  return axes.dump(-1, ' ', false, json::error_handler_t::replace);
}

Filled from_columns(const Statement& row) {
  json axes{{"model", row.text(2)},
            {"strategy", row.text(3)},
            {"device", row.text(4)},
            {"dtype", row.text(5)},
            {"batch_size", row.integer(6)}};
  if (const auto length = row.maybe_integer(7)) axes["sequence_length"] = *length;
  auto text = dumped(axes);
  return {row.integer(0), axes_sum(row.text(1), text), std::move(text)};
}

// As many as can be read before a damaged page, but for those with values of other types.
std::vector<Filled> read_columns(const Database& database) {
  std::vector<Filled> filled;
  try {
    Statement rows(database, kSeriesColumns);
    while (rows.next()) {
      try {
        filled.push_back(from_columns(rows));
      } catch (const DatabaseError&) {
        // its points are damaged too, which the checksums say
      }
    }
  } catch (const DatabaseError&) {
  }
  return filled;
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

void fill_axes(Database& database) {
  Statement update(database, "UPDATE series SET axes = ?, axes_sum = ? WHERE id = ?");
  for (const auto& one : read_columns(database)) {
    update.bind(0, one.text);
    update.bind(1, one.sum);
    update.bind(2, one.series);
    update.run();
  }
}

}  // namespace peakbench::history
