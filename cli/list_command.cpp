// `peakbench list`: what there is to choose from, read from manifests; no plugin code runs.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "devices/found.h"
#include "reports/render/format.h"
#include "text/printable.h"

namespace peakbench::cli {
namespace {

using Json = nlohmann::ordered_json;
using devices::DeviceFound;
using manifest::Entry;
using manifest::Kind;
using manifest::Option;
using manifest::OptionType;

constexpr const char* kFooter = R"(Examples:
  peakbench list models
  peakbench list strategies --json
  peakbench list devices
  peakbench list strategies --plugins build/my_plugins
Exit codes: 0; 2 when a folder is missing or holds no plugin.)";

struct ListArguments {
  std::string what;
  bool json = false;
  std::vector<std::string> plugins;
};

struct Listed {
  const Entry* entry;
  std::string path;
};

std::vector<Listed> entries_of(const manifest::Found& found, Kind kind) {
  std::vector<Listed> entries;
  for (const auto& plugin : found.plugins)
    if (plugin.kind == kind)
      for (const auto& entry : plugin.entries) entries.push_back({&entry, plugin.path});
  // Strategies in the order in which they are stacked, models by family as their plugin has them.
  if (kind == Kind::kStrategy)
    std::stable_sort(entries.begin(), entries.end(), [](const Listed& a, const Listed& b) {
      return a.entry->order < b.entry->order;
    });
  return entries;
}

const char* type_name(OptionType type) {
  switch (type) {
    case OptionType::kInteger:
      return "integer";
    case OptionType::kNumber:
      return "number";
    case OptionType::kBoolean:
      return "boolean";
    case OptionType::kString:
      return "string";
    case OptionType::kChoice:
      return "choice";
    case OptionType::kPath:
      return "path";
  }
  return "";
}

std::string plain(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string range_of(const Option& option) {
  if (!option.choices.empty()) return fmt::format("{}", fmt::join(option.choices, "|"));
  if (option.minimum && option.maximum)
    return fmt::format("{}..{}", reports::plain_number(*option.minimum),
                       reports::plain_number(*option.maximum));
  if (option.minimum) return fmt::format("from {}", reports::plain_number(*option.minimum));
  if (option.maximum) return fmt::format("up to {}", reports::plain_number(*option.maximum));
  return type_name(option.type);
}

std::string option_line(const Option& option) {
  const auto value = plain(option.default_value);
  const auto line = fmt::format("      {}={}  ({}{}{})  {}", option.name, value, range_of(option),
                                option.unit.empty() ? "" : " ", option.unit, option.summary);
  return printable(line) + "\n";
}

std::string entry_text(const Entry& entry, Kind kind) {
  auto text = fmt::format("{:<20} {}\n", entry.id, printable(entry.title));
  text += fmt::format("    {}\n", printable(entry.summary));
  if (kind == Kind::kModel)
    text += fmt::format("    {} parameters{}\n", reports::grouped(entry.parameters),
                        entry.has_sequence
                            ? fmt::format(", --seq {} by default", entry.default_sequence_length)
                            : "");
  if (kind == Kind::kStrategy) {
    text += fmt::format("    promise about training: {}", entry.promise);
    if (!entry.slots.empty()) text += fmt::format("; fills {}", fmt::join(entry.slots, ", "));
    text += "\n";
  }
  for (const auto& option : entry.options) text += option_line(option);
  return text;
}

Json option_json(const Option& option) {
  Json json{{"name", option.name},
            {"type", type_name(option.type)},
            {"default", option.default_value},
            {"unit", option.unit},
            {"summary", option.summary}};
  if (option.minimum) json["minimum"] = *option.minimum;
  if (option.maximum) json["maximum"] = *option.maximum;
  if (!option.choices.empty()) json["choices"] = option.choices;
  return json;
}

Json entry_json(const Listed& listed, Kind kind) {
  const auto& entry = *listed.entry;
  Json json{{"id", entry.id},
            {"title", entry.title},
            {"summary", entry.summary},
            {"source_url", entry.source_url}};
  if (kind == Kind::kModel) {
    json["family"] = entry.family;
    json["parameters"] = entry.parameters;
    json["facts"] = entry.facts;
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
    json["conflicts"] = entry.conflicts;
  }
  json["options"] = Json::array();
  for (const auto& option : entry.options) json["options"].push_back(option_json(option));
  json["plugin"] = listed.path;
  return json;
}

int list_entries(World& world, const ListArguments& arguments, Kind kind) {
  const auto found = find_plugins(world, arguments.plugins);
  Json all = Json::array();
  for (const auto& listed : entries_of(found, kind)) {
    if (arguments.json)
      all.push_back(entry_json(listed, kind));
    else
      world.out << entry_text(*listed.entry, kind);
  }
  if (arguments.json)
    world.out << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return kDone;
}

int list_devices(World& world, const ListArguments& arguments) {
  Json all = Json::array();
  const auto add = [&](const std::vector<DeviceFound>& found, bool emulated) {
    for (const auto& device : found) {
      if (arguments.json)
        all.push_back({{"id", device.id}, {"title", device.title}, {"emulated", emulated}});
      else
        world.out << fmt::format("{:<26} {}\n", printable(device.id), printable(device.title));
    }
  };
  add(devices::devices_of_this_machine(), false);
  add(devices::emulated_devices(), true);
  if (arguments.json)
    world.out << all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  return kDone;
}

}  // namespace

Command add_list(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("list", "Show the models, strategies or devices there are");
  command->footer(kFooter);
  const auto arguments = std::make_shared<ListArguments>();
  command->add_option("what", arguments->what, "models, strategies or devices")
      ->required()
      ->check(CLI::IsMember({"models", "strategies", "devices"}));
  command->add_flag("--json", arguments->json, "As JSON");
  command->add_option("--plugins", arguments->plugins, "Folder with more plugins")
      ->allow_extra_args(false)
      ->type_name("DIR");
  return [&world, arguments] {
    if (arguments->what == "devices") return list_devices(world, *arguments);
    return list_entries(world, *arguments,
                        arguments->what == "models" ? Kind::kModel : Kind::kStrategy);
  };
}

}  // namespace peakbench::cli
