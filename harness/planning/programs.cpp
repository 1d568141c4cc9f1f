#include "planning/programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "host/command.h"
#include "records/device.h"
#include "records/setting.h"

namespace peakbench::planning {
namespace {

namespace fs = std::filesystem;
using Filling = std::map<std::string, std::string>;

bool is_word(std::string_view text, std::string_view more, bool digit_first) {
  if (text.empty()) return false;
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!is_letter(text[0]) && !(digit_first && is_digit(text[0]))) return false;
  return std::ranges::all_of(text, [&](char c) {
    return is_letter(c) || is_digit(c) || more.find(c) != std::string_view::npos;
  });
}

[[noreturn]] void refuse(const std::string& text, const std::string& problem) {
  throw ConfigError(
      fmt::format("\"{}\": {}; write a literal brace twice: {{{{ or }}}}", text, problem));
}

// Calls `plain` with what stays as it is and `name` with what stands in braces.
void parse(const std::string& text, const std::function<void(std::string_view)>& plain,
           const std::function<void(const std::string&)>& name) {
  for (std::size_t at = 0; at < text.size();) {
    const auto brace = std::min(text.find_first_of("{}", at), text.size());
    plain(std::string_view(text).substr(at, brace - at));
    if (brace == text.size()) return;
    if (text.compare(brace, 2, "{{") == 0 || text.compare(brace, 2, "}}") == 0) {
      plain(std::string_view(text).substr(brace, 1));
      at = brace + 2;
      continue;
    }
    const auto end = text.find('}', brace);
    if (text[brace] == '}') refuse(text, "a } without its {");
    if (end == std::string::npos) refuse(text, "a { without its }");
    const auto inside = text.substr(brace + 1, end - brace - 1);
    if (!is_axis_name(inside)) refuse(text, fmt::format("{{{}}} is no axis's name", inside));
    name(inside);
    at = end + 1;
  }
}

// Every combination, in the order of the map.
std::vector<std::vector<std::pair<std::string, const AxisValue*>>> combinations(
    const std::map<std::string, std::vector<AxisValue>>& axes) {
  std::vector<std::vector<std::pair<std::string, const AxisValue*>>> all(1);
  for (const auto& [axis, values] : axes) {
    decltype(all) longer;
    for (const auto& one : all)
      for (const auto& value : values) longer.emplace_back(one).emplace_back(axis, &value);
    all = std::move(longer);
  }
  return all;
}

// Where and how long it runs; its arguments are yet to come.
records::ProgramCommand place_of(const Program& program, const Filling& values) {
  records::ProgramCommand command;
  for (const auto& [name, text] : program.environment)
    command.environment[name] = filled(text, values);
  command.folder = program.folder;
  command.typed_folder = program.typed_folder;
  command.timeout_s = program.timeout_s;
  return command;
}

// What a Python, a launcher of PyTorch or a shell is given to run: the first word that ends as a
// script does; empty where there is none, or a module or code is run.
std::string script_in(const std::vector<std::string>& words) {
  constexpr std::array kStart = {"python", "torchrun", "accelerate", "deepspeed", "sh", "bash"};
  const auto program = fs::path(words.front()).filename().string();
  const auto starts = [&](const char* one) {
    return program == one || (program.starts_with("python") && one == std::string_view("python"));
  };
  if (std::ranges::none_of(kStart, starts)) return "";
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    if (*word == "-m" || *word == "-c" || *word == "-") return "";
    if (!word->starts_with('-') && (word->ends_with(".py") || word->ends_with(".sh"))) return *word;
  }
  return "";
}

std::string nearest_file(const fs::path& missing) {
  std::vector<std::string> names;
  std::error_code error;
  for (auto entry = fs::directory_iterator(missing.parent_path(), error);
       !error && entry != fs::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  const auto found = nearest(missing.filename().string(), names);
  return found ? fmt::format("; did you mean \"{}\"?", printable(*found)) : "";
}

}  // namespace

std::vector<std::string> placeholders_in(const std::string& text) {
  std::vector<std::string> names;
  parse(
      text, [](std::string_view) {}, [&](const std::string& name) { names.push_back(name); });
  return names;
}

std::string filled(const std::string& text, const Filling& values) {
  std::string result;
  parse(
      text, [&](std::string_view part) { result += part; },
      [&](const std::string& name) { result += values.at(name); });
  return result;
}

bool is_axis_name(const std::string& name) { return is_word(name, "_-", false); }

bool is_program_name(const std::string& name) {
  constexpr std::size_t kLongest = 60;
  return name.size() <= kLongest && is_word(name, "._-", true);
}

std::vector<ProgramCase> cases_of(const Program& program) {
  std::vector<ProgramCase> cases;
  for (const auto& chosen : combinations(program.axes)) {
    auto& one = cases.emplace_back();
    one.selection.id = program.name;
    Filling values;
    for (const auto& [axis, value] : chosen) {
      one.selection.options[axis] = value->value;
      values[axis] = value->text;
    }
    one.command = place_of(program, values);
    for (const auto& word : program.command) one.command.arguments.push_back(filled(word, values));
  }
  return cases;
}

records::ProgramCommand command_of(const Program& program, const records::CaseSpec& spec,
                                   std::int64_t steps) {
  const auto& python = *program.python;
  auto command = place_of(program, {});
  command.arguments = {python.interpreter, "-m",
                       "peakbench.bench",  python.place,
                       "--model",          records::selection_text(spec.model),
                       "--strategy",       records::stack_text(spec.strategies)};
  const auto add = [&](const char* option, const std::string& value) {
    command.arguments.insert(command.arguments.end(), {option, value});
  };
  if (spec.batch_size != records::kUnknownBatch) add("--batch", std::to_string(spec.batch_size));
  if (spec.ranks) add("--ranks", std::to_string(*spec.ranks));
  add("--device", records::device_from(spec.device).is_host_memory ? "cpu" : "cuda");
  add("--steps", std::to_string(steps));
  add("--seed", std::to_string(spec.seed));
  return command;
}

std::string devices_section(const Program& program) {
  return fmt::format("programs/{}/devices", program.name);
}

void check_is_there(const Program& program, const ProgramCase& one) {
  const auto& word = one.command.arguments.front();
  const auto fail = [&](const std::string& problem) {
    throw ConfigError(fmt::format("{}: program \"{}\": {}", program.where, program.name, problem));
  };
  std::error_code ignored;
  if (const auto script = word.empty() ? "" : script_in(one.command.arguments); !script.empty())
    if (const auto path = fs::path(program.folder) / script; !fs::exists(path, ignored))
      fail(fmt::format("there is no file {}{}", printable(path.lexically_normal().string()),
                       nearest_file(path)));
  if (word.empty()) fail("the command's first word is empty; it names the program to start");
  if (word.find('/') == std::string::npos) {
    if (!one.command.environment.contains("PATH") && !process::find_program(word))
      fail(fmt::format("no program \"{}\" on PATH; install it, or name its file with a /", word));
    return;
  }
  const auto path = fs::path(program.folder) / word;
  if (!fs::is_regular_file(path, ignored))
    fail(
        fmt::format("no program {}; a command is found from the program's folder, which is the "
                    "suite's unless `folder` names another",
                    path.lexically_normal().string()));
}

}  // namespace peakbench::planning
