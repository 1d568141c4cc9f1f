#include "planning/suite_programs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/errors.h"
#include "base/nearest.h"
#include "planning/axes.h"
#include "planning/plan.h"

namespace peakbench::planning {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPrograms = "programs";
constexpr const char* kListOfWords =
    "expected a list with a string for each argument, like [\"python3\", \"train.py\"]; no shell "
    "reads it (a shell's line is [\"sh\", \"-c\", \"...\"])";
constexpr std::size_t kMostCases = 100'000;  // of one program
constexpr std::size_t kLongestValue = 200;   // it is part of the case's name

class ProgramReader {
 public:
  ProgramReader(const SuiteTable& table, const std::string& suite_file)
      : table_(table), suite_file_(suite_file) {}

  Program read(std::map<std::string, std::string>& places) {
    if (table_.has("python")) return read_python(places);
    table_.only(
        {"name", "command", "python", "environment", "folder", "axes", "devices", "timeout_s"});
    program_.where = table_.here();
    read_name();
    read_folder();
    read_axes();
    read_command();
    read_environment();
    check_axes_are_used();
    read_devices(places);
    read_timeout();
    for (const auto& one : cases_of(program_)) check_is_there(program_, one);
    return std::move(program_);
  }

 private:
  // Its cases are made when Python has been asked.
  Program read_python(std::map<std::string, std::string>& places) {
    table_.only({"python", "strategies", "batch_sizes", "ranks", "environment", "folder", "devices",
                 "timeout_s"});
    program_.where = table_.here();
    auto& python = program_.python.emplace();
    python.text = table_.text("python").value_or("");
    program_.name = python.text;
    for (const auto& [text, where] : table_.texts("strategies")) python.strategies.push_back(text);
    python.batch_sizes = integers("batch_sizes", records::kMostSamples);
    python.ranks = integers("ranks", records::kMostRanks);
    if (table_.has("strategies") && python.strategies.empty())
      table_.fail("strategies", "the list is empty; leave it out for all that there are");
    if (table_.has("batch_sizes") && python.batch_sizes.empty())
      table_.fail("batch_sizes", "the list is empty; leave it out for the model's own");
    if (table_.has("ranks") && python.ranks.empty()) table_.fail("ranks", "the list is empty");
    read_folder();
    read_environment();
    read_devices(places);
    read_timeout();
    return std::move(program_);
  }

  std::vector<std::int64_t> integers(const char* key, std::int64_t most) const {
    std::vector<std::int64_t> values;
    for (const auto& [text, where] : table_.integers(key)) {
      values.push_back(std::stoll(text));
      if (values.back() < 1 || values.back() > most)
        throw ConfigError(fmt::format("{}: {}: expected an integer from 1 to {}, got {}", where,
                                      key, most, text));
    }
    return values;
  }

  void read_timeout() {
    program_.timeout_s =
        table_.integer("timeout_s", {.least = 1, .most = kMostSeconds}).value_or(0);
  }

  void read_name() {
    program_.name = table_.text("name").value_or("");
    if (!table_.has("name"))
      table_.fail_here(
          "this program has no name; a name is part of its cases' names: name = "
          "\"train\"");
    if (!is_program_name(program_.name))
      table_.fail("name",
                  fmt::format("expected letters, digits and . _ -, a letter or digit first, "
                              "at most 60 characters; got \"{}\"",
                              program_.name));
  }

  void read_folder() {
    program_.typed_folder = table_.text("folder").value_or("");
    const auto beside = fs::absolute(suite_file_).parent_path();
    const auto folder = program_.typed_folder.empty() ? beside : beside / program_.typed_folder;
    program_.folder = folder.lexically_normal().string();
    std::error_code ignored;
    if (!fs::is_directory(program_.folder, ignored))
      table_.fail("folder", fmt::format("there is no folder {}; it is found from the suite's file",
                                        program_.folder));
  }

  void read_axes() {
    const auto axes = table_.table("axes");
    if (!axes) return;
    std::size_t count = 1;
    for (const auto& name : axes->keys()) {
      if (!is_axis_name(name))
        axes->fail(name, "no name of an axis: expected letters, digits, _ and -, a letter first");
      read_values(*axes, name);
      count *= program_.axes[name].size();
      if (count > kMostCases)
        axes->fail(name, fmt::format("the axes of \"{}\" make more than {} cases", program_.name,
                                     kMostCases));
    }
  }

  void read_values(const SuiteTable& axes, const std::string& name) {
    std::set<std::string> seen;
    for (const auto& [placed, value] : axes.values(name)) {
      const auto fail = [&, &where = placed.where](const std::string& problem) {
        throw ConfigError(fmt::format("{}: {}: {}", where, name, problem));
      };
      if (placed.text.size() > kLongestValue)
        fail(fmt::format("a value of {} bytes, which is part of the case's name; at most {}",
                         placed.text.size(), kLongestValue));
      if (placed.text.find('\0') != std::string::npos)
        fail("a value with a zero byte, which no argument can hold");
      if (!seen.insert(placed.text).second) fail(fmt::format("\"{}\" is there twice", placed.text));
      program_.axes[name].push_back({value, placed.text});
    }
    if (seen.empty()) axes.fail(name, "the list is empty; expected values, like [1, 4, 16]");
  }

  // Every placeholder has an axis.
  void check_text(const std::string& text, const std::string& where, const std::string& key) {
    const auto names = at_place({{key, where + ": " + key}}, key, [&] {
      if (text.find('\0') != std::string::npos)
        throw ConfigError("a zero byte, which no argument and no variable can hold");
      return placeholders_in(text);
    });
    for (const auto& name : names) {
      used_.insert(name);
      if (program_.axes.contains(name)) continue;
      std::vector<std::string> known;
      for (const auto& [axis, values] : program_.axes) known.push_back(axis);
      throw ConfigError(fmt::format(
          "{}: {}: no axis fills {{{}}} of \"{}\"{}; add {} = [...] below [programs.axes], or "
          "write "
          "{{{{{}}}}} for the braces themselves",
          where, key, name, text, known.empty() ? "" : suggestion(name, known), name, name));
    }
  }

  void read_command() {
    if (!table_.has("command"))
      table_.fail_here(
          fmt::format("program \"{}\" has no command; {}", program_.name, kListOfWords));
    if (table_.is_text("command")) table_.fail("command", kListOfWords);
    for (const auto& [text, where] : table_.texts("command")) {
      check_text(text, where, "command");
      program_.command.push_back(text);
    }
    if (program_.command.empty())
      table_.fail("command", fmt::format("the list is empty; {}", kListOfWords));
  }

  void read_environment() {
    const auto environment = table_.table("environment");
    if (!environment) return;
    for (const auto& [name, value] : environment->scalars()) {
      if (name.empty() || name.find_first_of(std::string("=\0", 2)) != std::string::npos)
        environment->fail(name, fmt::format("\"{}\" is no name of a variable", name));
      check_text(value.text, value.where, "environment." + name);
      program_.environment[name] = value.text;
    }
  }

  void check_axes_are_used() const {
    const auto axes = table_.table("axes");
    for (const auto& [name, values] : program_.axes)
      if (!used_.contains(name))
        axes->fail(name, fmt::format("no placeholder uses this axis, so its cases would be the "
                                     "same program; put {{{}}} in the command or the environment "
                                     "of \"{}\", or leave the axis out",
                                     name, program_.name));
  }

  void read_devices(std::map<std::string, std::string>& places) {
    for (const auto& [text, where] : table_.texts("devices")) {
      program_.devices.push_back(text);
      places.emplace(devices_section(program_) + "/" + text, where);
    }
    if (table_.has("devices") && program_.devices.empty())
      table_.fail("devices", "the list is empty");
  }

  const SuiteTable& table_;
  const std::string& suite_file_;
  Program program_;
  std::set<std::string> used_;
};

}  // namespace

std::vector<Program> read_programs(const SuiteTable& suite, const std::string& suite_file,
                                   std::map<std::string, std::string>& places) {
  std::vector<Program> programs;
  suite.each_in_list(kPrograms, [&](const SuiteTable& table) {
    auto program = ProgramReader(table, suite_file).read(places);
    if (std::ranges::count(programs, program.name, &Program::name) != 0)
      table.fail("name",
                 fmt::format("two programs are called \"{}\"; names must be unique", program.name));
    programs.push_back(std::move(program));
  });
  if (suite.has(kPrograms) && programs.empty()) suite.fail(kPrograms, "the list is empty");
  return programs;
}

}  // namespace peakbench::planning
