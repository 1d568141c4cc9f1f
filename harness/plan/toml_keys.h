// What is looked at in a TOML file before it is parsed.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace peakbench::plan {

inline constexpr int kMostKeyParts = 32;  // model_options."qwen2.5-0.5b".layers has three

// The line (from 1) of the first dotted key, in a table's head or before a value, of more than
// kMostKeyParts parts. Each part is a table in a table: the parser has no limit for these, and a
// hundred thousand of them would take its whole stack.
std::optional<std::size_t> line_of_endless_key(std::string_view text);

}  // namespace peakbench::plan
