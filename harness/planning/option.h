#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/fields.h"
#include "planning/manifest.h"
#include "planning/vocabulary.h"

namespace peakbench::planning {

// What values an option takes, in one place: for a manifest's own defaults, suites and the command
// line.

// "an integer from 1 to 4096", "one of qkv, mlp", "true or false".
std::string expected(const Option& option);

// The value as the option's type holds it (an integer where a number is wanted becomes a number),
// or nullopt where the type, the range or the choice is wrong.
std::optional<nlohmann::json> accept(const Option& option, const nlohmann::json& value);

// The same for a text from the command line: `16`, `0.5`, `true`, `mlp`.
std::optional<nlohmann::json> accept_text(const Option& option, const std::string& text);

// One name in a value of the type `parts`, with the number behind it: "mlp=16".
struct ChosenPart {
  std::string name;
  std::optional<std::int64_t> number;
};
// Those that the value names, each known and there once; none for `auto`, which leaves the choice
// to the strategy. nullopt where the text is something else. Only an option with a range has
// numbers.
std::optional<std::vector<ChosenPart>> chosen_parts(const Option& option, const std::string& text);

std::string to_string(OptionType type);

// One option of a manifest's entry.

// Mistakes go to `problems`; the option is then incomplete.
Option read_option(const Fields& fields, Problems& problems);

}  // namespace peakbench::planning
