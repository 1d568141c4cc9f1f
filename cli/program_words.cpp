#include "cli/program_words.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "cli/completion.h"
#include "errors/errors.h"
#include "process/find_program.h"
#include "program/run_folder.h"
#include "program/traced.h"
#include "text/nearest.h"
#include "workers/torch_found.h"

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
  const auto command_named = [&](const std::string& name) {
    const auto found =
        app.get_subcommands([&](const CLI::App* one) { return one->get_name() == name; });
    return found.empty() ? nullptr : found.front();
  };
  const auto* command = command_named(words[0]);
  if (command != nullptr && std::ranges::count(kStartPrograms, words[0]) != 0) {
    const auto at = program_begin(*command, words, 1);
    if (at && words[*at] != "--")
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*at), "--");
    return words;
  }
  if (command != nullptr && words[0] == "releases") {  // which takes a suite, too
    const auto at = program_begin(*command, words, 1);
    if (at && is_script(words[*at]))
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*at), "--");
    return words;
  }
  const auto* emulate = command_named("emulate");
  if (command != nullptr || emulate == nullptr) return words;
  auto moved = words;
  const auto at = program_begin(*emulate, moved, 0);
  if (!at || (moved[*at] != "--" && !is_script(moved[*at]))) return words;
  if (moved[*at] != "--") moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(*at), "--");
  moved.insert(moved.begin(), "emulate");
  return moved;
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

plan::Program program_of(const std::vector<std::string>& command, const std::string& where) {
  plan::Program made;
  made.name = program::safe_name(program::name_of(command));
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
  const auto python = workers::python_of_environment();
  if (python.empty())
    throw ConfigError(
        fmt::format("{}: there is no python3 or python on PATH to run it; install Python, or name "
                    "yours in PEAKBENCH_PYTHON",
                    script));
  program.insert(program.begin(), python.string());
  return program;
}

}  // namespace peakbench::cli
