#include "cli/accepted_figures.h"

#include <fmt/format.h>

#include "reports/render/format.h"
#include "result/case_json.h"

namespace peakbench::cli {
namespace {

using nlohmann::json;

std::string figure_text(const json& value) {
  if (value.is_null()) return "none";
  if (value.is_number_integer()) return reports::grouped(value.get<std::int64_t>());
  if (value.is_string()) return value.get<std::string>();
  return value.is_structured() ? "figures" : value.dump();
}

// "expected 1,024, got 1,536 (+512)"
std::string change_text(const json& before, const json& now) {
  auto text = fmt::format("expected {}, got {}", figure_text(before), figure_text(now));
  if (before.is_number_integer() && now.is_number_integer() && before >= 0)  // no overflow
    text += fmt::format(
        " ({})", reports::signed_grouped(now.get<std::int64_t>() - before.get<std::int64_t>()));
  return text;
}

json at(const json& whole, const json::json_pointer& place) {
  return whole.contains(place) ? whole.at(place) : json();
}

}  // namespace

json figures_of(const result::Run& run) {
  json cases = json::object();
  for (const auto& result : run.cases) {
    auto& figures = cases[result.spec.id] = {{"status", to_string(result.status)}};
    if (!result.memory) continue;
    const auto memory = result::to_json(*result.memory);
    for (const char* key :
         {"peak_allocated_bytes", "peak_requested_bytes", "peak_reserved_bytes", "at_peak"})
      figures[key] = memory[key];
  }
  return {{"libtorch", run.environment.value("libtorch", "")}, {"cases", cases}};
}

std::vector<std::string> differences(const json& accepted, const result::Run& run) {
  const json &expected = accepted["cases"], got = figures_of(run)["cases"];
  std::vector<std::string> found;
  for (const auto& change : json::diff(expected, got)) {
    const json::json_pointer place(change["path"].get<std::string>());
    std::string id, figure;  // of /ID/at_peak/parameter the first and the others
    for (auto rest = place; !rest.empty(); rest.pop_back()) {
      if (!id.empty()) figure = id + (figure.empty() ? ": " : ".") + figure;
      id = rest.back();
    }
    auto& text = found.emplace_back(
        fmt::format("{}: {}{}", id, figure, change_text(at(expected, place), at(got, place))));
    if (const auto* result = result::find_case(run, id); result && !result->reason.empty())
      text += ": " + result->reason;
  }
  return found;
}

}  // namespace peakbench::cli
