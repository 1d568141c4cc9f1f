// `peakbench list`: what there is to choose from, read from manifests; no plugin code runs.
#include <fmt/format.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/axis_options.h"
#include "cli/commands.h"
#include "cli/entries.h"
#include "cli/one_of.h"
#include "cli/output_format.h"
#include "cli/worker.h"
#include "inventory/found.h"
#include "reports/render/format.h"
#include "text/printable.h"
#include "text/wrapped.h"

namespace peakbench::cli {
namespace {

using Json = nlohmann::ordered_json;
using inventory::DeviceFound;
using manifest::Entry;
using manifest::Kind;

constexpr const char* kListFooter = R"(Examples:
  peakbench list
  peakbench list models
  peakbench list strategies --json
  peakbench list devices
  peakbench list strategies --plugins build/my_plugins
Exit codes: 0; 2 when a folder is missing or holds no plugin.)";

constexpr const char* kContextNote =
    "CUDA context: measured on such cards, in no figure here; unknown where not shown.";

struct ListArguments {
  std::string what;
  OutputFormat format;
  std::vector<std::string> plugins;
};

std::string entry_text(const Entry& entry, Kind kind, int width) {
  auto text = hanging(fmt::format("{:<20} ", entry.id), printable(entry.title), width);
  text += hanging("    ", printable(entry.summary), width);
  if (kind == Kind::kModel)
    text += fmt::format("    {} parameters{}\n", reports::grouped(entry.parameters),
                        entry.has_sequence
                            ? fmt::format(", --seq {} by default", entry.default_sequence_length)
                            : "");
  if (kind == Kind::kStrategy) {
    auto words = "promise about training: " + entry.promise;
    if (!entry.slots.empty()) words += fmt::format("; fills {}", fmt::join(entry.slots, ", "));
    text += hanging("    ", printable(words), width);
  }
  for (const auto& option : entry.options) text += option_line(option, width);
  return text;
}

int list_entries(World& world, const ListArguments& arguments, Kind kind) {
  const auto found = find_plugins(world, worker_to_look_at(world), arguments.plugins);
  Json all = Json::array();
  for (const auto& listed : entries_of(found, kind)) {
    if (arguments.format.is_text())
      world.out << entry_text(*listed.entry, kind, world.out_width);
    else
      all.push_back(entry_json(listed, kind));
  }
  if (!arguments.format.is_text()) world.out << arguments.format.of(all);
  return kDone;
}

Json device_json(const DeviceFound& device, bool emulated) {
  Json json = {{"id", device.id}, {"title", device.title}, {"emulated", emulated}};
  if (emulated) json["context_memory"] = emulator::to_json(device.context_memory);
  return json;
}

std::string device_text(const DeviceFound& device, int width) {
  auto text = hanging(fmt::format("{:<26} ", printable(device.id)), printable(device.title), width);
  if (!device.context_memory.empty())
    text += hanging(
        "    ", "CUDA context " + printable(emulator::short_text(device.context_memory)), width);
  return text;
}

int list_devices(World& world, const ListArguments& arguments) {
  Json all = Json::array();
  const auto add = [&](const std::vector<DeviceFound>& found, bool emulated) {
    for (const auto& device : found) {
      if (arguments.format.is_text())
        world.out << device_text(device, world.out_width);
      else
        all.push_back(device_json(device, emulated));
    }
  };
  add(inventory::devices_of_this_machine(), false);
  const auto cards = inventory::emulated_devices();
  add(cards, true);
  if (!arguments.format.is_text())
    world.out << arguments.format.of(all);
  else if (!cards.empty())
    world.out << wrapped(kContextNote, world.out_width);
  return kDone;
}

struct ListedKind {
  const char* name;
  const char* text;
};
constexpr std::array<ListedKind, 3> kKinds{
    {{"models", "what is trained"},
     {"strategies", "how it is trained: what takes less memory or time"},
     {"devices", "where: this machine's, and the emulated cards"}}};

// Without a kind: which there are.
int list_kinds(World& world, const ListArguments& arguments) {
  Json all = Json::array();
  for (const auto& [name, text] : kKinds) {
    if (arguments.format.is_text())
      world.out << fmt::format("peakbench list {:<12}{}\n", name, text);
    else
      all.push_back({{"kind", name}, {"summary", text}});
  }
  if (!arguments.format.is_text()) world.out << arguments.format.of(all);
  return kDone;
}

}  // namespace

Command add_list(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("list", "Show the models, strategies or devices there are");
  command->footer(kListFooter);
  const auto arguments = std::make_shared<ListArguments>();
  command->add_option("what", arguments->what, "models, strategies or devices")
      ->transform(one_of({"models", "strategies", "devices"}, {{"model", "models"},
                                                               {"strategy", "strategies"},
                                                               {"device", "devices"},
                                                               {"card", "devices"},
                                                               {"cards", "devices"},
                                                               {"gpus", "devices"}}));
  add_output_format(*command, arguments->format);
  add_repeated(*command, "--plugins", arguments->plugins, "Folder with more plugins", "DIR");
  add_torch(*command, world);
  return [&world, arguments] {
    if (arguments->what.empty()) return list_kinds(world, *arguments);
    if (arguments->what == "devices") return list_devices(world, *arguments);
    return list_entries(world, *arguments,
                        arguments->what == "models" ? Kind::kModel : Kind::kStrategy);
  };
}

}  // namespace peakbench::cli
