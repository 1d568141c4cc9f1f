#include "reports/report/settings.h"

#include "reports/render/format.h"
#include "reports/render/text.h"
#include "result/axes.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;

std::string for_people(const json& value) {
  if (value.is_number_integer()) return grouped(value.get<std::int64_t>());
  return value.is_string() ? printable(value.get<std::string>()) : "";
}

}  // namespace

std::vector<SettingView> settings_view(const json& values) {
  std::vector<SettingView> list;
  for (const auto& row : result::axes()) {
    const auto found = values.find(row.name);
    if (found == values.end() || *row.in_heading == 0) continue;
    const auto value = for_people(*found);
    list.push_back({.name = row.name,
                    .label = row.label,
                    .value = value,
                    .text = result::in_words(row.in_heading, value),
                    .short_text = result::in_words(row.in_line, value)});
  }
  return list;
}

}  // namespace peakbench::reports
