#include "cli/completion.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/regular_file.h"
#include "cli/commands.h"
#include "cli/help_format.h"
#include "cli/option_values.h"
#include "cli/plugins.h"
#include "cli/worker.h"
#include "launch/devices.h"
#include "launch/machine.h"

namespace peakbench::cli {
namespace {

using Words = std::vector<std::string>;

// Of "TEXT:{models,strategies,devices}".
Words choices_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto begin = type.find(":{"), end = type.rfind('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 2, end - begin - 2), ',');
}

std::string long_name(const CLI::Option& option) {
  const auto& names = option.get_lnames();
  return names.empty() ? "" : names.front();
}

// What was typed so far: the command that it leads to, and what its last word belongs to.
struct Typed {
  const CLI::App* command;
  const CLI::Option* option = nullptr;  // whose value the last word is
  std::size_t positionals = 0;          // complete ones
  bool of_others = false;               // behind `--`
};

Typed read(const CLI::App& app, const Words& words) {
  Typed typed{&app};
  for (std::size_t i = 0; i + 1 < words.size() && !typed.of_others; ++i) {
    const auto& word = words[i];
    if (typed.option != nullptr) {
      typed.option = nullptr;
    } else if (word == "--") {
      typed.of_others = true;
    } else if (!word.empty() && word[0] == '-') {
      const auto* option = option_named(*typed.command, word);
      if (option != nullptr && takes_value(*option) && word.find('=') == std::string::npos)
        typed.option = option;
    } else if (const auto* command = command_named(*typed.command, word)) {
      typed.command = command;
    } else {
      ++typed.positionals;
    }
  }
  return typed;
}

// A value is a stack or a list: its last part is completed. Behind a name, its options.
Words completed_value(const CLI::Option& option, const std::string& name, const std::string& value,
                      const CompletionValues& values) {
  const auto last = value.find_last_of("+,");
  const auto head = last == std::string::npos ? "" : value.substr(0, last + 1);
  Words found = choices_of(option);
  if (found.empty()) found = values.of_option(name);
  if (!head.empty() && head.back() == ',') {
    const auto part = value.find_last_of('+', last);
    const auto begin = part == std::string::npos ? 0 : part + 1;
    const auto owner = value.substr(begin, value.find(',', begin) - begin);
    for (const auto& one : values.options_of(owner)) found.push_back(one + "=");
  }
  for (auto& one : found) one = head + one;
  return found;
}

Words option_names(const CLI::App& command) {
  Words names;
  for (const auto* option : command.get_options())
    if (const auto name = long_name(*option); !name.empty() && !option->get_group().empty())
      names.push_back("--" + name);
  return names;
}

Words next_positional(const Typed& typed, const std::string& word, const CompletionValues& values) {
  Words found;
  if (typed.positionals == 0)
    for (const auto* command : shown_commands(*typed.command)) found.push_back(command->get_name());
  std::size_t place = 0;
  for (const auto* option : typed.command->get_options()) {
    if (!option->get_positional()) continue;
    const bool last = option->get_items_expected_max() > 1;
    if (place++ == typed.positionals || (last && place <= typed.positionals))
      for (auto& one : completed_value(*option, option->get_name(true, false), word, values))
        found.push_back(std::move(one));
  }
  return found;
}

Words candidates(const CLI::App& app, const Words& words, const CompletionValues& values) {
  const auto typed = read(app, words);
  const auto& word = words.back();
  if (typed.of_others) return {};
  if (typed.option != nullptr)
    return completed_value(*typed.option, long_name(*typed.option), word, values);
  if (word.empty() || word[0] != '-') return next_positional(typed, word, values);
  const auto equals = word.find('=');
  if (equals == std::string::npos) return option_names(*typed.command);
  const auto* option = option_named(*typed.command, word);
  if (option == nullptr) return {};
  auto found = completed_value(*option, long_name(*option), word.substr(equals + 1), values);
  for (auto& one : found) one = word.substr(0, equals + 1) + one;
  return found;
}

// `peakbench completion` and `peakbench man`: what a shell and `man` are told of the commands.

namespace fs = std::filesystem;

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
planning::Found usable_plugins(const World& world) {
  const auto worker = any_worker(world);
  return planning::discover(with_own(worker, named_folders({})), worker.stamp);
}

Words ids_of(const World& world, planning::Kind kind) {
  Words ids;
  const auto found = usable_plugins(world);
  for (const auto& listed : entries_of(found, kind)) ids.push_back(listed.entry->id);
  return ids;
}

Words options_of(const World& world, const std::string& id) {
  Words names;
  const auto found = usable_plugins(world);
  for (const auto kind : {planning::Kind::kModel, planning::Kind::kStrategy})
    for (const auto& listed : entries_of(found, kind))
      if (listed.entry->id == id)
        for (const auto& option : listed.entry->options) names.push_back(option.name);
  return names;
}

Words device_ids(bool cards_alone) {
  const std::string emulated = "emulated:";
  Words ids;
  if (!cards_alone)
    for (const auto& device : launch::devices_of_this_machine()) ids.push_back(device.id);
  for (const auto& card : launch::emulated_devices())
    ids.push_back(cards_alone ? card.id.substr(emulated.size()) : card.id);
  return ids;
}

Words values_of(const World& world, const std::string& option) {
  if (option == "model") return ids_of(world, planning::Kind::kModel);
  if (option == "strategy" || option == "new-strategy")
    return ids_of(world, planning::Kind::kStrategy);
  if (option == "device") return device_ids(false);
  if (option == "card") return device_ids(true);
  return {};
}

}  // namespace

const CLI::App* command_named(const CLI::App& app, const std::string& word) {
  for (const auto* command : app.get_subcommands({}))
    if (command->get_name() == word) return command;
  return nullptr;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

const CLI::Option* option_named(const CLI::App& command, const std::string& word) {
  const auto name = word.substr(0, word.find('='));
  for (const auto* option : command.get_options())
    for (const auto& known : option->get_lnames())
      if (name == "--" + known) return option;
  for (const auto* option : command.get_options())
    for (const auto& known : option->get_snames())
      if (name == "-" + known) return option;
  return nullptr;
}

Words completions(const CLI::App& app, const Words& words, const CompletionValues& values) {
  if (words.empty()) return {};
  auto found = candidates(app, words, values);
  std::erase_if(found, [&](const std::string& one) { return one.rfind(words.back(), 0) != 0; });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int complete(const CLI::App& app, World& world, const Words& words) {
  const CompletionValues values{
      [&world](const std::string& option) { return values_of(world, option); },
      [&world](const std::string& id) { return options_of(world, id); }};
  for (const auto& word : completions(app, words, values)) world.out << word << "\n";
  return kDone;
}

Command add_completion(CLI::App& app, World& world) {
  auto* command =
      subcommand(app, "completion", "Print a completion script for a shell", kCompletionFooter);
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
  subcommand(app, "man", "Print the manual page", kManFooter);
  return [&app, &world] {
    world.out << man_page(app, launch::peakbench_version());
    return kDone;
  };
}

}  // namespace peakbench::cli
