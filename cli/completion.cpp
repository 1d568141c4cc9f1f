#include "cli/completion.h"

#include <algorithm>

#include "cli/help_format.h"

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

const CLI::App* command_named(const CLI::App& app, const std::string& word) {
  for (const auto* command : app.get_subcommands({}))
    if (command->get_name() == word) return command;
  return nullptr;
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

}  // namespace

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

}  // namespace peakbench::cli
