// `peakbench list`: what there is to choose from, read from manifests; no plugin code runs.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/columns.h"
#include "base/errors.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/plugins.h"
#include "cli/program_words.h"
#include "cli/worker.h"
#include "host/command.h"
#include "launch/devices.h"
#include "programs/python_functions.h"
#include "reports/render/format.h"

namespace peakbench::cli {
namespace {

using Json = nlohmann::ordered_json;
using launch::DeviceFound;
using planning::Entry;
using planning::Kind;

constexpr const char* kListFooter = R"(Examples:
  peakbench list
  peakbench list models
  peakbench list models --library hf
  peakbench list strategies --json
  peakbench list devices
  peakbench list strategies --plugins build/my_plugins
Exit codes: 0 done; 2 a folder is missing or has no plugin, or Python cannot list the library.)";

constexpr const char* kCardsNote =
    "cc: compute capability. context: the largest CUDA context that was measured on such a card. "
    "(refused): this PyTorch has no code for the card. --json has the sources and reasons.";

struct ListArguments {
  std::string what, library;
  OutputFormat format;
  std::vector<std::string> plugins;
};

// A line each: `describe NAME` has the rest.
std::string entry_line(const Entry& entry, Kind kind) {
  if (kind == Kind::kStrategy)
    return fmt::format("{:<22} {:<18} {}\n", entry.id, entry.promise, printable(entry.title));
  return fmt::format("{:<22} {:>14}  {:>7}  {}\n", entry.id, reports::grouped(entry.parameters),
                     entry.has_sequence ? std::to_string(entry.default_sequence_length) : "",
                     printable(entry.title));
}

std::string heading_line(Kind kind) {
  if (kind == Kind::kStrategy)
    return fmt::format("{:<22} {:<18} {}\n", "strategy", "training", "title");
  return fmt::format("{:<22} {:>14}  {:>7}  {}\n", "model", "parameters", "--seq", "title");
}

int list_entries(World& world, const ListArguments& arguments, Kind kind) {
  const auto found = find_plugins(world, worker_to_look_at(world), arguments.plugins);
  const auto entries = entries_of(found, kind);
  if (arguments.format.is_text()) {
    world.out << heading_line(kind);
    for (const auto& listed : entries) world.out << entry_line(*listed.entry, kind);
    world.out << "`peakbench describe NAME` shows what one does, and its options.\n";
    return kDone;
  }
  Json all = Json::array();
  for (const auto& listed : entries) all.push_back(entry_json(listed, kind));
  world.out << arguments.format.of(all);
  return kDone;
}

// Models that --program takes by name, as python/peakbench/models says.
int list_library(World& world, const ListArguments& arguments) {
  constexpr std::chrono::minutes kPatience{5};  // some import PyTorch
  if (arguments.what != "models")
    throw ConfigError("--library is for models: peakbench list models --library " +
                      arguments.library);
  const auto python = interpreter_of_environment("--library: ");
  auto words = process::python_module(python, "peakbench.bench");
  words.insert(words.end(), {"--list", arguments.library});
  const auto said = process::ask_command({.arguments = words, .patience = kPatience});
  const auto all = Json::parse(said.out, nullptr, false);
  if (!all.is_array())
    throw ConfigError("--library: " +
                      printable(all.is_object()
                                    ? all.value("error", "")
                                    : programs::why_no_answer(said, python, arguments.library)));
  if (!arguments.format.is_text()) {
    world.out << arguments.format.of(all);
    return kDone;
  }
  world.out << fmt::format("{:<32} {:>15}  {}\n", "model", "parameters", "source");
  for (const auto& model : all) {
    const auto& parameters = model.at("parameters");
    const auto& source = model.at("source");
    const auto name = arguments.library + ":" + model.at("name").get<std::string>();
    auto line = fmt::format("{:<32}", printable(name));
    if (parameters.is_number())
      line = fmt::format("{} {:>15}", line, reports::grouped(parameters.get<std::int64_t>()));
    if (source.is_string()) line += "  " + printable(source.get<std::string>());
    world.out << line.substr(0, line.find_last_not_of(' ') + 1) << '\n';
  }
  return kDone;
}

Json device_json(const DeviceFound& device, bool emulated) {
  Json json = {{"id", device.id}, {"title", device.title}, {"emulated", emulated}};
  if (!emulated) return json;
  json["memory_bytes"] = device.memory_bytes;
  json["compute_capability"] = device.compute_capability;
  json["refused"] = device.refused;
  json["context_memory"] = emulator::to_json(device.context_memory);
  return json;
}

std::string card_line(const DeviceFound& card) {
  return fmt::format(
      "{:<27} {:>11}  {:>4}  {:>7}  {}{}", printable(card.id),
      gib_text(static_cast<std::int64_t>(card.memory_bytes)), card.compute_capability,
      card.context_memory.empty()
          ? ""
          : fmt::format("{} MiB", emulator::largest_of(card.context_memory).bytes >> 20),
      card.refused.empty() ? "" : "(refused) ", printable(card.title));
}

int list_devices(World& world, const ListArguments& arguments) {
  const auto own = launch::devices_of_this_machine();
  const auto cards = launch::emulated_devices();
  if (!arguments.format.is_text()) {
    Json all = Json::array();
    for (const auto& device : own) all.push_back(device_json(device, false));
    for (const auto& card : cards) all.push_back(device_json(card, true));
    world.out << arguments.format.of(all);
    return kDone;
  }
  for (const auto& device : own)
    world.out << hanging(fmt::format("{:<27} ", printable(device.id)), printable(device.title),
                         world.line_width);
  if (cards.empty()) return kDone;
  world.out << fmt::format("\n{:<27} {:>11}  {:>4}  {:>7}  {}\n", "emulated card", "memory", "cc",
                           "context", "title");
  for (const auto& card : cards) world.out << fit(card_line(card), world.line_width) << "\n";
  world.out << wrapped(kCardsNote, world.out_width);
  return kDone;
}

constexpr std::array<std::array<const char*, 2>, 3> kKinds{
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
  auto* command = subcommand(app, "list", "List models, strategies or devices", kListFooter);
  const auto arguments = std::make_shared<ListArguments>();
  command->add_option("what", arguments->what, "What to list: models, strategies or devices")
      ->transform(one_of({"models", "strategies", "devices"}, {{"model", "models"},
                                                               {"strategy", "strategies"},
                                                               {"device", "devices"},
                                                               {"card", "devices"},
                                                               {"cards", "devices"},
                                                               {"gpus", "devices"}}));
  add_value(*command, "--library", arguments->library,
            "Models of a Python library, for run --program: hf, timm, torchvision or diffusers",
            "NAME");
  add_output_format(*command, arguments->format);
  add_repeated(*command, "--plugins", arguments->plugins, "Folder with more plugins", "DIR");
  add_torch(*command, world);
  return [&world, arguments] {
    if (!arguments->library.empty()) return list_library(world, *arguments);
    if (arguments->what.empty()) return list_kinds(world, *arguments);
    if (arguments->what == "devices") return list_devices(world, *arguments);
    return list_entries(world, *arguments,
                        arguments->what == "models" ? Kind::kModel : Kind::kStrategy);
  };
}

}  // namespace peakbench::cli
