#include "cli/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/plugin_folders.h"
#include "cli/rows.h"
#include "json/json_text.h"
#include "launch/run_folder.h"
#include "reports/render/text.h"
#include "result/axes.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

using Json = nlohmann::ordered_json;

Json case_as_json(const plan::PlannedCase& planned) {
  const auto& spec = planned.spec;
  Json json;
  json["id"] = spec.id;
  json["slug"] = spec.slug;
  result::append_json(json, spec);
  json["added_for"] = planned.added_for;
  json["decided"] = planned.decided ? Json(to_string(*planned.decided)) : Json();
  json["reason"] = planned.reason;
  json["warning"] = planned.warning;
  if (planned.program) json["program"] = Json(launch::settings_of(*planned.program));
  return json;
}

// As a shell would be told it, from the suite's folder.
std::string command_text(const result::ProgramCommand& program) {
  std::vector<std::string> words;
  for (const auto& [name, value] : program.environment) words.push_back(name + "=" + value);
  const auto command = reports::shell_quoted(program.arguments);
  const auto variables = words.empty() ? "" : reports::shell_quoted(words) + " ";
  const auto folder = program.typed_folder.empty()
                          ? ""
                          : "cd " + reports::shell_quoted({program.typed_folder}) + " && ";
  return folder + variables + command;
}

}  // namespace

std::string plan_as_text(const plan::Plan& plan, const std::vector<manifest::Folder>& folders) {
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
  const auto decided = std::count_if(plan.cases.begin(), plan.cases.end(),
                                     [](const auto& one) { return one.decided.has_value(); });
  text += fmt::format(
      "{} case{}, {} of them will not run.{}\n", count, count == 1 ? "" : "s", decided,
      plan.reference.empty()
          ? ""
          : fmt::format(" Differences are shown against {}.", printable(plan.reference)));
  if (!folders.empty()) text += fmt::format("Plugins also from {}.\n", in_words(folders));
  return text;
}

std::string plan_as_json(const plan::Plan& plan, const std::vector<manifest::Folder>& folders) {
  Json json;
  json["reference"] = plan.reference;
  json["plugin_folders"] = Json::array();
  for (const auto& folder : folders)
    json["plugin_folders"].push_back({{"path", folder.path}, {"named_by", folder.named_by}});
  json["cases"] = Json::array();
  for (const auto& planned : plan.cases) json["cases"].push_back(case_as_json(planned));
  return json_text(json);
}

}  // namespace peakbench::cli
