// The one way in for JSON that somebody else wrote: run files, manifests, cards, lines of a
// history.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace peakbench {

// Ours have fewer than ten levels; what follows the levels one by one (copying, writing) needs
// stack for each.
inline constexpr int kMostJsonLevels = 100;

// `seen` is called as nlohmann::json's parser does. Throws RunFileError that begins with what is
// wrong: empty, cut short, not JSON, a number that no 64-bit floating-point number holds (1e999),
// more than kMostJsonLevels levels; with line and column, and the field as a JSON pointer where
// there is one. The path is the caller's to add.
nlohmann::json parse_json(std::string_view text,
                          const nlohmann::json::parser_callback_t& seen = nullptr);

}  // namespace peakbench
