#include "cli/program_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>

#include "base/errors.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "cli/completion.h"
#include "cli/worker.h"
#include "host/command.h"
#include "launch/worker_choice.h"
#include "programs/run_folder.h"
#include "programs/traced.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJson = "--json";
constexpr const char* kJsonHere = "--json=-";  // to standard output
// Before a program's word in brackets, which CLI11 would take for a list: "[64,128]" for two words.
constexpr char kOneWord = '\x01';

bool is_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

// Whether a word after `--json` is its file; `next` follows it.
bool is_json_file(const std::string& word, const std::string* next) {
  if (is_option(word) || word == "-") return false;
  if (next == nullptr || is_option(*next)) return !is_script(word);
  return word.find_first_of("./") != std::string::npos && !is_script(word);
}

// Where the program begins, at its first word or at "--"; nullopt where there is none, or an option
// that the command does not know. Writes out a `--json` without a file.
std::optional<std::size_t> program_begin(const CLI::App& command, std::vector<std::string>& words,
                                         std::size_t begin) {
  const bool writes_json = command.get_name() == "emulate";
  for (std::size_t i = begin; i < words.size(); ++i) {
    if (words[i] == "--" || !is_option(words[i])) return i;
    const auto* option = option_named(command, words[i]);
    if (option == nullptr) return std::nullopt;
    if (writes_json && words[i] == kJson) {
      const auto* next = i + 2 < words.size() ? &words[i + 2] : nullptr;
      if (i + 1 < words.size() && is_json_file(words[i + 1], next)) {
        ++i;
        continue;
      }
      words[i] = kJsonHere;
      if (i + 1 < words.size() && words[i + 1] == "-")
        words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    } else if (takes_value(*option) && words[i].find('=') == std::string::npos) {
      ++i;
    }
  }
  return std::nullopt;
}

// Scripts beside one that is not there.
std::vector<std::string> scripts_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, ignored))
    if (is_script(entry.path().filename().string()))
      found.push_back((folder / entry.path().filename()).string());
  std::ranges::sort(found);
  return found;
}

bool needs_mark(const std::string& word) {
  const bool in_brackets = word.size() > 1 && word.front() == '[' && word.back() == ']';
  return in_brackets || (!word.empty() && word.front() == kOneWord);
}

std::vector<std::string> set_apart(const CLI::App& app, std::vector<std::string> words) {
  constexpr std::array<std::string_view, 3> kStartPrograms = {"emulate", "trace", "fit"};
  if (words.empty()) return words;
  const auto* command = command_named(app, words[0]);
  const bool takes_suite = words[0] == "releases";
  if (command != nullptr && (takes_suite || std::ranges::count(kStartPrograms, words[0]) != 0)) {
    const auto at = program_begin(*command, words, 1);
    if (at && words[*at] != "--" && (!takes_suite || is_script(words[*at])))
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*at), "--");
    return words;
  }
  const auto* emulate = command_named(app, "emulate");
  if (command != nullptr || emulate == nullptr) return words;
  auto moved = words;
  const auto at = program_begin(*emulate, moved, 0);
  if (!at || (moved[*at] != "--" && !is_script(moved[*at]))) return words;
  if (moved[*at] != "--") moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(*at), "--");
  moved.insert(moved.begin(), "emulate");
  return moved;
}

std::vector<std::string> subcommand_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> long_option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

// CLI11 says what it did not expect; we say what was probably meant.
void check_command_name(const CLI::App& app, const std::vector<std::string>& arguments) {
  const auto& word = arguments[0];
  const auto names = subcommand_names(app);
  if (std::ranges::count(names, word) != 0) return;
  if (word.ends_with(".toml") && files::is_there(word))
    throw ConfigError(fmt::format("{0} is a suite: peakbench run {0}", word));
  if (!nearest(word, names) && process::find_program(word))
    throw ConfigError(fmt::format("no command \"{}\"; to run that program: peakbench -- {}", word,
                                  fmt::join(arguments, " ")));
  throw ConfigError(fmt::format("no command \"{}\"{}", word, suggestion(word, names)));
}

// The command that was given, or the part of it: `history add`.
const CLI::App& innermost(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::string full_name(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr || parent->get_parent() == nullptr
             ? app.get_name()
             : full_name(*parent) + " " + app.get_name();
}

// What other tools call an option; the first that the command has is meant.
const std::multimap<std::string, std::string>& other_names() {
  static const std::multimap<std::string, std::string> kNames{
      {"--batch-size", "--batch"}, {"--batch_size", "--batch"},
      {"--bs", "--batch"},         {"--seq-len", "--seq"},
      {"--seq-length", "--seq"},   {"--sequence-length", "--seq"},
      {"--max-length", "--seq"},   {"--precision", "--dtype"},
      {"--gpu", "--device"},       {"--gpu", "--card"},
      {"--gpus", "--device"},      {"--gpus", "--card"},
      {"--cuda", "--device"},      {"--cuda", "--card"},
      {"-v", "--version"},         {"-V", "--version"},
      {"--output", "--out"},       {"--device", "--card"},
      {"--output-dir", "--out"},   {"--optimizer", "--strategy"},
      {"--optim", "--strategy"},   {"--gradient-checkpointing", "--strategy"}};
  return kNames;
}

std::string command_line(const CLI::App& app) {
  return app.get_parent() == nullptr ? "peakbench" : "peakbench " + full_name(app);
}

[[noreturn]] void refuse_option(const CLI::App& at, const std::string& name) {
  if (name == "--no-least" && at.get_name() == "fit")
    throw ConfigError(
        "no option --no-least of `peakbench fit`: leave it out; the least memory is looked for "
        "with --least alone");
  const auto names = long_option_names(at);
  const auto has = [&](const std::string& one) { return std::ranges::count(names, one) != 0; };
  if (has("--card") && (name == "--memory" || name == "--memory-limit" || name == "--count"))
    throw ConfigError(
        fmt::format("no option {} of `peakbench {}`: it is part of the card, as in "
                    "--card h100-80gb,memory=24GiB,count=2",
                    name, full_name(at)));
  // The name itself is the nearest of one that is there.
  auto meant = name;
  const auto [first, last] = other_names().equal_range(name);
  for (auto other = first; other != last && meant == name; ++other)
    if (has(other->second)) meant = other->second;
  throw ConfigError(
      fmt::format("no option {} of `{}`{}", name, command_line(at), suggestion(meant, names)));
}

[[noreturn]] void refuse_extra(const CLI::App& app) {
  const CLI::App& at = innermost(app);
  const auto extra = app.remaining(true);
  const auto script = std::ranges::find_if(extra, is_script);
  for (const auto& text : extra) {
    if (!text.starts_with('-')) continue;
    const auto name = text.substr(0, text.find('='));
    if (at.get_parent() == nullptr && script != extra.end())
      throw ConfigError(fmt::format(
          "no option {} of `peakbench`; if it belongs to the script, put it after it: peakbench {} "
          "{}",
          name, *script, name));
    refuse_option(at, name);
  }
  if (const auto parts = subcommand_names(at); !parts.empty() && !extra.empty())
    throw ConfigError(fmt::format("no command \"{} {}\"{}", full_name(at), extra.front(),
                                  suggestion(extra.front(), parts)));
  throw ConfigError(fmt::format("`peakbench {}` does not expect \"{}\"; see `peakbench {} --help`",
                                full_name(at), fmt::join(extra, " "), full_name(at)));
}

// Options stand behind the command; before it are those of `peakbench` alone.
void check_first_option(const CLI::App& app, const std::vector<std::string>& words) {
  const auto name = words[0].substr(0, words[0].find('='));
  // The one before a command is that of --cmake-dir.
  if (name != kTorchOption && option_named(app, name) != nullptr) return;
  const CLI::App* at = &app;
  std::size_t first = 0;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto* next = command_named(*at, words[i]);
    if (next != nullptr) at = next;
    if (next != nullptr && first == 0) first = i;
    if (next == nullptr && first != 0) break;
  }
  if (at == &app) {  // an option of `emulate` without anything to run?
    if (option_named(app, name) == nullptr && name != "-v" &&
        option_named(*command_named(app, "emulate"), name) != nullptr)
      throw ConfigError(
          fmt::format("no program to run; expected: peakbench {} train.py", fmt::join(words, " ")));
    return;
  }
  if (option_named(*at, name) == nullptr) refuse_option(*at, name);
  const auto end = words.begin() + static_cast<std::ptrdiff_t>(first);
  throw ConfigError(fmt::format("{} must follow the command: peakbench {} {}", name, full_name(*at),
                                fmt::join(words.begin(), end, " ")));
}

// What is typed comes into messages, results and jobs. A program of the user's own gets its
// arguments as they are.
void check_utf8(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "emulate") return;
  for (const auto& argument : arguments)
    if (!is_utf8(argument))
      throw ConfigError(
          fmt::format("the argument {} is not UTF-8, which results (JSON) require: rename the "
                      "file, or link to it by another name",
                      escaped_bytes(argument)));
}

// What a command is given without an option: "gate BASE NEW", and the first that is missing.
[[noreturn]] void refuse_missing(const CLI::App& app, const std::string& said) {
  const CLI::App& at = innermost(app);
  std::string line = command_line(at), missing;
  for (const auto* option : at.get_options()) {
    if (!option->get_positional() || !option->get_required()) continue;
    auto name = option->get_single_name();
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    line += " " + name;
    if (missing.empty() && option->count() == 0)
      missing = fmt::format("{} ({})", name, option->get_description());
  }
  if (missing.empty()) throw ConfigError(said);
  throw ConfigError(fmt::format("`{}` needs {}: {}; see `{} --help`", command_line(at), missing,
                                line, command_line(at)));
}

}  // namespace

bool is_script(const std::string& word) { return word.size() > 3 && word.ends_with(".py"); }

std::vector<std::string> with_program_set_apart(const CLI::App& app,
                                                std::vector<std::string> words) {
  words = set_apart(app, std::move(words));
  for (auto word = std::ranges::find(words, "--"); word != words.end(); ++word)
    if (needs_mark(*word)) word->insert(0, 1, kOneWord);
  return words;
}

CLI::Option* add_program(CLI::App& command, std::vector<std::string>& words,
                         const std::string& name, const std::string& text) {
  return command.add_option(name, words, text)->transform([](const std::string& word) {
    return !word.empty() && word.front() == kOneWord ? word.substr(1) : word;
  });
}

planning::Program program_of(const std::vector<std::string>& command, const std::string& where) {
  planning::Program made;
  made.name = programs::safe_name(programs::name_of(command));
  made.folder = fs::current_path().string();
  made.where = where;
  for (const auto& word : command) {
    auto& text = made.command.emplace_back();
    for (const char c : word) text += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
  }
  return made;
}

std::vector<std::string> runnable(std::vector<std::string> program) {
  if (program.empty() || !is_script(program[0])) return program;
  const auto& script = program[0];
  std::error_code ignored;
  if (!fs::is_regular_file(script, ignored)) {
    if (process::find_program(script)) return program;
    const auto near = nearest(script, scripts_in(fs::path(script).parent_path()));
    throw ConfigError(fmt::format("{}: there is no such file{}", script,
                                  near ? fmt::format("; did you mean \"{}\"?", *near) : ""));
  }
  const bool is_path = script.find('/') != std::string::npos;
  if (is_path && access(script.c_str(), X_OK) == 0) return program;
  const auto python = launch::python_of_environment();
  if (python.empty())
    throw ConfigError(
        fmt::format("{}: there is no python3 or python on PATH to run it; install Python, or name "
                    "yours in PEAKBENCH_PYTHON",
                    script));
  program.insert(program.begin(), python.string());
  return program;
}

std::string interpreter_of_environment(const std::string& what) {
  const auto interpreter = launch::torch_of_environment().python;
  if (interpreter.empty())
    throw ConfigError(what +
                      "there is no python3 or python on PATH; install Python, or name yours in "
                      "PEAKBENCH_PYTHON");
  return interpreter;
}

void parse_words(CLI::App& app, const std::vector<std::string>& words) {
  check_utf8(words);
  if (words[0].starts_with('-'))
    check_first_option(app, words);
  else
    check_command_name(app, words);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::ExtrasError&) {
    refuse_extra(app);
  } catch (const CLI::RequiredError& error) {
    refuse_missing(app, error.what());
  } catch (const CLI::Success&) {  // --help, --version
    throw;
  } catch (const CLI::ParseError& error) {
    throw ConfigError(error.what());
  }
}

}  // namespace peakbench::cli
