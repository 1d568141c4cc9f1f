#include "cli/option_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "base/json.h"
#include "base/nearest.h"
#include "base/numbers.h"

namespace peakbench::cli {
namespace {

constexpr std::int64_t kMostOfARange = 1000;

// "8", "4k", "4K".
std::optional<std::int64_t> whole_from(std::string_view text, std::int64_t most) {
  const bool thousands = text.ends_with('k') || text.ends_with('K');
  if (thousands) text.remove_suffix(1);
  const std::int64_t unit = thousands ? 1024 : 1;
  const auto number = integer_from_text(text, {1, most / unit});
  return number ? std::optional(*number * unit) : std::nullopt;
}

// Of "1..8" the ends, of "8" twice that.
std::optional<std::pair<std::int64_t, std::int64_t>> range_from(const std::string& text,
                                                                std::int64_t most) {
  const auto dots = text.find("..");
  const auto first = whole_from(text.substr(0, dots), most);
  const auto last = dots == std::string::npos ? first : whole_from(text.substr(dots + 2), most);
  if (!first || !last) return std::nullopt;
  return std::pair{*first, *last};
}

std::vector<std::string> split(const records::AxisRow& row, const std::vector<std::string>& typed) {
  const std::string names = row.asked->option;  // "-b,--batch"
  const auto option = names.substr(names.find("--"));
  if (row.asked->is_list) return typed;
  if (!row.is_integer) return split_values(typed, row.asked->has_options, option);
  std::vector<std::string> texts;
  for (const auto number : positive_numbers(typed, option, row.asked->most))
    texts.push_back(std::to_string(number));
  return texts;
}

// What is typed stands nowhere in the suite: messages must not point there.
void forget_places(planning::Request& request, const std::string& section) {
  std::erase_if(request.where,
                [&](const auto& place) { return place.first.starts_with(section + "/"); });
}

}  // namespace

CLI::Validator one_of(const std::vector<std::string>& words,
                      const std::map<std::string, std::string>& other_names) {
  const auto check = [words, other_names](std::string& word) -> std::string {
    if (const auto other = other_names.find(word); other != other_names.end()) word = other->second;
    if (std::ranges::count(words, word) != 0) return "";
    const auto near = nearest(word, words);
    return fmt::format("\"{}\" is none of {}{}", word, fmt::join(words, ", "),
                       near ? fmt::format("; did you mean \"{}\"?", *near) : "");
  };
  return {check, fmt::format("{{{}}}", fmt::join(words, ","))};
}

CLI::Validator whole_number(std::int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    if (integer_from_text(text, {least})) return "";
    return fmt::format("Value {} not in range {} to {}", text, least,
                       std::numeric_limits<std::int64_t>::max());
  };
  return CLI::Validator(check, "");
}

std::int64_t bytes_from(const std::string& text, const std::string& option) {
  if (const auto why = why_no_memory_size(text); !why.empty())
    throw ConfigError(fmt::format("{} \"{}\": {}", option, text, why));
  return *bytes_from_text(text);
}

std::vector<std::string> split_values(const std::vector<std::string>& values, bool with_options,
                                      const std::string& option) {
  std::vector<std::string> result;
  for (const auto& value : values) {
    if (with_options && value.find('=') != std::string::npos) {
      result.push_back(value);
      continue;
    }
    std::istringstream pieces(value + ",");  // getline drops what follows the last comma
    for (std::string piece; std::getline(pieces, piece, ',');) {
      if (piece.empty()) throw ConfigError(fmt::format("{}: empty value in \"{}\"", option, value));
      result.push_back(piece);
    }
  }
  return result;
}

std::vector<std::int64_t> positive_numbers(const std::vector<std::string>& values,
                                           const std::string& option, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (const auto& text : split_values(values, false, option)) {
    const auto range = range_from(text, most);
    if (!range)
      throw ConfigError(
          fmt::format("{}: \"{}\" is not a whole number from 1 to {}", option, text, most));
    const auto [first, last] = *range;
    if (first > last || last - first >= kMostOfARange)
      throw ConfigError(fmt::format("{}: \"{}\" is no range of 1 to {} numbers, like 1..8", option,
                                    text, kMostOfARange));
    for (auto number = first; number <= last; ++number) result.push_back(number);
  }
  return result;
}

CLI::Option* add_repeated(CLI::App& command, const std::string& name,
                          std::vector<std::string>& values, const std::string& words,
                          const std::string& type) {
  return add_value(command, name, values, words, type)->allow_extra_args(false);
}

CLI::Option* add_axis_option(CLI::App& command, const records::AxisRow& row, TypedLists& typed) {
  const auto& asked = *row.asked;
  return add_repeated(command, asked.option, typed[row.axis], asked.help, asked.type)
      ->group("Cases (options can be repeated; every combination is a case)");
}

bool is_typed(const TypedLists& typed, records::Axis axis) {
  const auto found = typed.find(axis);
  return found != typed.end() && !found->second.empty();
}

void take_typed(const TypedLists& typed, planning::Request& request) {
  for (const auto* row : records::asked_axes()) {
    if (!is_typed(typed, row->axis)) continue;
    request.is_narrowed = true;
    request.lists[row->axis] = split(*row, typed.at(row->axis));
    forget_places(request, row->asked->list);
    if (row->axis == records::Axis::kDevice)
      for (auto& program : request.programs) program.devices.clear();
  }
}

CLI::Option* add_on_off(CLI::App& command, const std::string& name, std::string& value,
                        const std::string& words) {
  return add_value(command, name, value, words, "on|off")->check(one_of({"on", "off"}));
}

CLI::Option* add_assume(CLI::App& command, std::string& value, const std::string& words) {
  return add_value(command, "--assume", value, words, "nonzero=none|all")
      ->check(one_of({"nonzero=none", "nonzero=all"}));
}

void add_templates(CLI::App& command, std::string& folder) {
  add_value(command, "--templates", folder,
            "Folder with templates that replace the bundled ones, file by file", "DIR");
}

void add_jobs(CLI::App& command, std::optional<std::int64_t>& jobs, const std::string& words) {
  add_number(command, "--jobs", jobs, words + " (default: the number of processors)", 1, 1024);
}

void add_second_guess(CLI::App& command, std::int64_t& runs) {
  add_number(command, "--second-guess", runs,
             "If the program read unknown values, run it N more times with other values and "
             "compare the peaks (default 0)",
             0, 20);
}

std::string OutputFormat::of(const nlohmann::ordered_json& all, const char* rows) const {
  if (name != "csv") return json_text(all);
  return csv_text(rows == nullptr ? all : all.at(rows));
}

void add_output_format(CLI::App& command, OutputFormat& format) {
  auto* named = add_value(command, "--format", format.name,
                          "Output format: text (default), json or csv", "NAME")
                    ->check(one_of({"text", "json", "csv"}));
  command
      .add_flag_callback(
          "--json", [&format] { format.name = "json"; }, "Same as --format json")
      ->excludes(named);
}

}  // namespace peakbench::cli
