// `peakbench completion` and `peakbench man`: what a shell and `man` are told of the commands.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/entries.h"
#include "cli/man_page.h"
#include "cli/one_of.h"
#include "cli/plugin_folders.h"
#include "cli/worker.h"
#include "files/read_file.h"
#include "inventory/found.h"
#include "launch/host.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

using Words = std::vector<std::string>;

constexpr const char* kCompletionFooter = R"text(Examples:
  eval "$(peakbench completion bash)"
  peakbench completion zsh > ~/.zfunc/_peakbench
  peakbench completion fish > ~/.config/fish/completions/peakbench.fish
Completes commands, options, models, strategies with their options, devices and cards. To enable it
permanently, add the first line to ~/.bashrc.
Exit codes: 0 done; 2 unknown shell.)text";

constexpr const char* kManFooter = R"text(Examples:
  peakbench man | man -l -
  peakbench man > ~/.local/share/man/man1/peakbench.1
Exit codes: 0 done.)text";

// Of a plugin that cannot be read a shell is told nothing.
manifest::Found usable_plugins(const World& world) {
  const auto worker = any_worker(world);
  return manifest::discover(with_own(worker, named_folders({})), worker.stamp);
}

Words ids_of(const World& world, manifest::Kind kind) {
  Words ids;
  const auto found = usable_plugins(world);
  for (const auto& listed : entries_of(found, kind)) ids.push_back(listed.entry->id);
  return ids;
}

Words options_of(const World& world, const std::string& id) {
  Words names;
  const auto found = usable_plugins(world);
  for (const auto kind : {manifest::Kind::kModel, manifest::Kind::kStrategy})
    for (const auto& listed : entries_of(found, kind))
      if (listed.entry->id == id)
        for (const auto& option : listed.entry->options) names.push_back(option.name);
  return names;
}

Words device_ids(bool cards_alone) {
  const std::string emulated = "emulated:";
  Words ids;
  if (!cards_alone)
    for (const auto& device : inventory::devices_of_this_machine()) ids.push_back(device.id);
  for (const auto& card : inventory::emulated_devices())
    ids.push_back(cards_alone ? card.id.substr(emulated.size()) : card.id);
  return ids;
}

Words values_of(const World& world, const std::string& option) {
  if (option == "model") return ids_of(world, manifest::Kind::kModel);
  if (option == "strategy" || option == "new-strategy")
    return ids_of(world, manifest::Kind::kStrategy);
  if (option == "device") return device_ids(false);
  if (option == "card") return device_ids(true);
  return {};
}

}  // namespace

int complete(const CLI::App& app, World& world, const Words& words) {
  const CompletionValues values{
      [&world](const std::string& option) { return values_of(world, option); },
      [&world](const std::string& id) { return options_of(world, id); }};
  for (const auto& word : completions(app, words, values)) world.out << word << "\n";
  return kDone;
}

Command add_completion(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("completion", "Print a completion script for a shell");
  command->footer(kCompletionFooter);
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "Shell: bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  return [&world, shell] {
    world.out << files::read_regular_file(
        (fs::path(world.places.templates) / "completion" / *shell).string(), files::kMostSmallText);
    return kDone;
  };
}

Command add_man(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("man", "Print the manual page");
  command->footer(kManFooter);
  return [&app, &world] {
    world.out << man_page(app, launch::peakbench_version());
    return kDone;
  };
}

}  // namespace peakbench::cli
