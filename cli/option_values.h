#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "planning/plan.h"

namespace peakbench::cli {

// Accepts one of these words, and replaces an alias by its word. The message for any other word
// names the nearest one, or all. Completion knows the words.
CLI::Validator one_of(const std::vector<std::string>& words,
                      const std::map<std::string, std::string>& other_names = {});

// From `least` to the largest of 64 bits with a sign. CLI11's own conversion takes a row of digits
// that is too long for the largest number, and a negative one for a large unsigned one.
CLI::Validator whole_number(std::int64_t least);

// "60GiB", "1.5 GB", "4096": bytes. Throws ConfigError that names `option`.
std::int64_t bytes_from(const std::string& text, const std::string& option);

// Values of a repeatable option, split at commas. Where a value may carry options (NAME,key=value),
// only values without any are split. Empty pieces are errors.
std::vector<std::string> split_values(const std::vector<std::string>& values, bool with_options,
                                      const std::string& option);

// Whole numbers from 1 to `most`: "8", "4k" (4096) and ranges "1..8" of at most a thousand numbers.
// Throws ConfigError that names `option`.
std::vector<std::int64_t> positive_numbers(const std::vector<std::string>& values,
                                           const std::string& option, std::int64_t most);

// What was typed for a run's cases, by axis; those that were not typed are empty.
using TypedLists = std::map<records::Axis, std::vector<std::string>>;
bool is_typed(const TypedLists& typed, records::Axis axis);

// An option or argument; `type` names its value in the help.
template <class Value>
CLI::Option* add_value(CLI::App& command, const std::string& name, Value& value,
                       const std::string& words, const std::string& type) {
  return command.add_option(name, value, words)->type_name(type);
}

// An option whose every value is kept as typed.
CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& words,
                          const std::string& type);

CLI::Option* add_axis_option(CLI::App& command, const records::AxisRow& row, TypedLists& typed);

// What was typed, split at commas and checked, in the place of what the request has. Throws
// ConfigError that names the option.
void take_typed(const TypedLists& typed, planning::Request& request);

// A whole number of this range.
template <class Number>
CLI::Option* add_number(CLI::App& command, const std::string& name, Number& value,
                        const std::string& words, std::int64_t from, std::int64_t to) {
  return add_value(command, name, value, words, "N")->check(CLI::Range(from, to));
}

CLI::Option* add_on_off(CLI::App& command, const std::string& name, std::string& value,
                        const std::string& words);

// `--assume nonzero=WHAT`.
CLI::Option* add_assume(CLI::App& command, std::string& value, const std::string& words);

// `--templates DIR`, of every command that writes pages.
void add_templates(CLI::App& command, std::string& folder);

// `--jobs N`; its default is added to the words.
void add_jobs(CLI::App& command, std::optional<std::int64_t>& jobs, const std::string& words);

// `--second-guess N`, of every command that runs programs on an emulated card.
void add_second_guess(CLI::App& command, std::int64_t& runs);

struct OutputFormat {
  std::string name = "text";
  bool is_text() const { return name == "text"; }

  // `all`: an array of objects for CSV, or an object whose field `rows` is one.
  std::string of(const nlohmann::ordered_json& all, const char* rows = nullptr) const;
};

// `--format text|json|csv`, and `--json` for short.
void add_output_format(CLI::App& command, OutputFormat& format);

}  // namespace peakbench::cli
