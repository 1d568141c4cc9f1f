#include "cli/plugins.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/columns.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/worker.h"
#include "planning/option.h"
#include "reports/render/format.h"

namespace peakbench::cli {

std::vector<planning::Folder> folders_of_environment() {
  std::vector<planning::Folder> folders;
  const char* value = std::getenv(kPluginsVariable);
  if (value == nullptr) return folders;
  if (!is_utf8(value))
    throw ConfigError(fmt::format("{}: {} is not UTF-8, which results (JSON) require",
                                  kPluginsVariable, escaped_bytes(value)));
  std::istringstream list(value);
  for (std::string folder; std::getline(list, folder, ':');)
    if (!folder.empty()) folders.emplace_back(folder, kPluginsVariable);
  return folders;
}

std::vector<planning::Folder> named_folders(const std::vector<std::string>& typed,
                                            const std::vector<planning::Folder>& of_suite) {
  auto folders = folders_of_environment();
  folders.insert(folders.end(), of_suite.begin(), of_suite.end());
  folders.insert(folders.end(), typed.begin(), typed.end());
  return folders;
}

std::vector<planning::Folder> with_own(const planning::Worker& worker,
                                       std::vector<planning::Folder> named) {
  if (named.empty() || files::is_folder(worker.plugins))
    named.insert(named.begin(), {worker.plugins, "the installation"});
  return named;
}

std::string in_words(const std::vector<planning::Folder>& folders) {
  std::string words;
  for (const auto& folder : folders)
    words += fmt::format("{}{} ({})", words.empty() ? "" : ", ", printable(folder.path),
                         printable(folder.named_by));
  return words;
}

std::vector<std::string> without_environment(std::vector<std::string> typed) {
  for (const auto& folder : folders_of_environment())
    typed.insert(typed.end(), {"--plugins", folder.path});
  return typed;
}

planning::Found find_plugins(World& world, const planning::Worker& worker,
                             const std::vector<std::string>& typed,
                             const std::vector<planning::Folder>& of_suite) {
  auto found = planning::discover(with_own(worker, named_folders(typed, of_suite)), worker.stamp);
  for (const auto& problem : found.problems)
    world.err << "peakbench: a plugin is left out: " << printable(problem) << "\n";
  return found;
}

namespace {

using Json = nlohmann::ordered_json;
using planning::Kind;
using planning::Offer;
using planning::Option;

std::string plain(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string range_of(const Option& option) {
  if (option.type == planning::OptionType::kParts) return "parts";
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, "|"));
  if (option.minimum && option.maximum)
    return fmt::format("{}..{}", reports::plain_number(*option.minimum),
                       reports::plain_number(*option.maximum));
  if (option.minimum) return fmt::format("from {}", reports::plain_number(*option.minimum));
  if (option.maximum) return fmt::format("up to {}", reports::plain_number(*option.maximum));
  return planning::to_string(option.type);
}

Json option_json(const Option& option) {
  Json json{{"name", option.name},
            {"type", planning::to_string(option.type)},
            {"default", option.default_value},
            {"unit", option.unit},
            {"summary", option.summary}};
  if (option.minimum) json["minimum"] = *option.minimum;
  if (option.maximum) json["maximum"] = *option.maximum;
  if (!option.choices.empty()) json["choices"] = option.choices;
  return json;
}

}  // namespace

std::vector<planning::Offer> entries_of(const planning::Found& found, Kind kind) {
  std::vector<Offer> entries;
  for (const auto& plugin : found.plugins)
    if (plugin.kind == kind)
      for (const auto& entry : plugin.entries) entries.push_back({&entry, plugin.path});
  if (kind == Kind::kStrategy)
    std::ranges::stable_sort(entries, {}, [](const Offer& one) { return one.entry->order; });
  return entries;
}

std::string option_line(const Option& option, int width) {
  const auto value = plain(option.default_value);
  const auto words = fmt::format("{}={}  ({}{}{})  {}", option.name, value, range_of(option),
                                 option.unit.empty() ? "" : " ", option.unit, option.summary);
  return hanging("      ", printable(words), width);
}

Json entry_json(const Offer& listed, Kind kind) {
  const auto& entry = *listed.entry;
  Json json{{"id", entry.id},
            {"title", entry.title},
            {"summary", entry.summary},
            {"source_url", entry.source_url},
            {"aliases", entry.aliases}};
  if (kind == Kind::kModel) {
    json["family"] = entry.family;
    json["parameters"] = entry.parameters;
    json["facts"] = entry.facts;
    json["linears"] = entry.linears;
    json["default_sequence_length"] =
        entry.has_sequence ? Json(entry.default_sequence_length) : Json();
  } else {
    json["promise"] = entry.promise;
    json["tolerance"] = entry.tolerance ? Json(*entry.tolerance) : Json();
    json["relative_tolerance"] =
        entry.relative_tolerance ? Json(*entry.relative_tolerance) : Json();
    json["slots"] = entry.slots;
    json["wrappers"] = entry.wrappers;
    json["capabilities"] = entry.capabilities;
    json["needs"] = entry.needs;
    json["requires"] = entry.requires_slots;
    json["conflicts"] = Json::array();
    for (const auto& [id, reason] : entry.conflicts)
      json["conflicts"].push_back({{"id", id}, {"reason", reason}});
    json["cost"] = {{"parameters", entry.cost.parameters},
                    {"gradients", entry.cost.gradients},
                    {"optimizer_state", entry.cost.optimizer_state},
                    {"activations", entry.cost.activations}};
  }
  json["options"] = Json::array();
  for (const auto& option : entry.options) json["options"].push_back(option_json(option));
  json["plugin"] = listed.path;
  return json;
}

}  // namespace peakbench::cli
