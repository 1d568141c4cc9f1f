#include "cli/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/printable.h"
#include "cli/plugins.h"
#include "launch/run_folder.h"
#include "records/axes.h"
#include "reports/render/format.h"
#include "reports/render/text.h"
#include "reports/run/view.h"

namespace peakbench::cli {
namespace {

std::string figures(const records::CaseResult& result) {
  std::string text;
  if (result.memory) {
    text += fmt::format("peak {} GiB allocated", reports::gib(result.memory->peak_allocated_bytes));
    if (const auto reserved = result.memory->peak_reserved_bytes)
      text += fmt::format(", {} reserved", reports::gib(*reserved));
    if (const auto beside = reports::beside_text(result); !beside.empty()) text += ", " + beside;
    text += "  ";
  }
  if (result.throughput)
    text += fmt::format("{} ms/step  {} samples/s  ",
                        reports::milliseconds(result.throughput->step_ns.median),
                        reports::decimal(result.throughput->samples_per_second, 3));
  return text;
}

using Json = nlohmann::ordered_json;

Json case_as_json(const planning::PlannedCase& planned) {
  const auto& spec = planned.spec;
  Json json{{"id", spec.id}, {"slug", spec.slug}};
  records::append_json(json, spec);
  json["added_for"] = planned.added_for;
  json["decided"] = planned.decided ? Json(to_string(*planned.decided)) : Json();
  json["reason"] = planned.reason;
  json["warning"] = planned.warning;
  if (planned.program) json["program"] = Json(launch::settings_of(*planned.program));
  return json;
}

// As a shell would be told it, from the suite's folder.
std::string command_text(const records::ProgramCommand& program) {
  std::vector<std::string> words;
  for (const auto& [name, value] : program.environment) words.push_back(name + "=" + value);
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  const auto folder = program.typed_folder.empty()
                          ? ""
                          : "cd " + reports::shell_quoted({program.typed_folder}) + " && ";
  return folder + reports::shell_quoted(words);
}

}  // namespace

std::string counter(std::size_t place, std::size_t count) {
  const auto total = std::to_string(count);
  return fmt::format("[{:>{}}/{}]", place + 1, total.size(), total);
}

std::string case_row(std::size_t place, std::size_t count, const records::CaseResult& result,
                     int columns) {
  auto row = fmt::format("{} {:<13}  {}", counter(place, count), to_string(result.status),
                         figures(result));
  const auto id = printable(result.spec.id) +
                  (result.added_for.empty() ? "" : "  (added for " + result.added_for + ")");
  if (display_width(row + id) > columns)
    row.replace(row.find_last_not_of(' ') + 1, row.npos, "\n    ");
  row += id + "\n";
  if (!result.reason.empty()) row += "    " + printable(result.reason) + "\n";
  return row;
}

std::string elided(const std::string& text, std::size_t width) {
  if (text.size() <= width) return text;
  // Not through the middle of a character.
  const auto inside = [&](std::size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
  };
  const auto tail = width < 8 ? 0 : (width - 3) / 2;
  auto head = width < 8 ? width : width - 3 - tail, rest = text.size() - tail;
  while (head > 0 && inside(head)) --head;
  while (inside(rest)) ++rest;
  return text.substr(0, head) + (width < 8 ? "" : "...") + text.substr(rest);
}

std::string duration(std::int64_t seconds) {
  if (seconds < 60) return fmt::format("{} s", seconds);
  if (seconds < 3600) return fmt::format("{} min {:02} s", seconds / 60, seconds % 60);
  return fmt::format("{} h {:02} min", seconds / 3600, seconds % 3600 / 60);
}

std::string plan_as_text(const planning::Plan& plan, const std::vector<planning::Folder>& folders) {
  const auto count = plan.cases.size();
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& planned = plan.cases[i];
    text += fmt::format(
        "{} {}{}\n", counter(i, count), printable(planned.spec.id),
        planned.added_for.empty() ? "" : "  (added for the ablation; --no-ablation leaves it out)");
    if (planned.program) text += fmt::format("    {}\n", printable(command_text(*planned.program)));
    if (planned.decided)
      text += fmt::format("    {}: {}\n", to_string(*planned.decided), printable(planned.reason));
    if (!planned.warning.empty())
      text += fmt::format("    warning: {}\n", printable(planned.warning));
  }
  const auto decided =
      std::ranges::count_if(plan.cases, [](const auto& one) { return one.decided.has_value(); });
  text += fmt::format("{}, {} of them will not run.{}\n", reports::count_of(count, "case"), decided,
                      plan.reference.empty() ? ""
                                             : fmt::format(" Differences are shown against {}.",
                                                           printable(plan.reference)));
  if (!folders.empty()) text += fmt::format("Plugins also from {}.\n", in_words(folders));
  return text;
}

std::string plan_as_json(const planning::Plan& plan, const std::vector<planning::Folder>& folders) {
  Json json{{"reference", plan.reference}, {"plugin_folders", Json::array()}};
  for (const auto& folder : folders)
    json["plugin_folders"].push_back({{"path", folder.path}, {"named_by", folder.named_by}});
  json["cases"] = Json::array();
  for (const auto& planned : plan.cases) json["cases"].push_back(case_as_json(planned));
  return json_text(json);
}

}  // namespace peakbench::cli
