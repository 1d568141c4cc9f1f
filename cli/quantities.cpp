#include "cli/quantities.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "errors/errors.h"
#include "units/bytes.h"

namespace peakbench::cli {
namespace {

constexpr std::int64_t kMostOfARange = 1000;

// "8", "4k", "4K".
std::optional<std::int64_t> whole_from(std::string_view text, std::int64_t most) {
  const bool thousands = text.ends_with('k') || text.ends_with('K');
  if (thousands) text.remove_suffix(1);
  std::int64_t number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  const std::int64_t unit = thousands ? 1024 : 1;
  if (error != std::errc() || rest != end || number < 1 || number > most / unit)
    return std::nullopt;
  return number * unit;
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

}  // namespace

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

}  // namespace peakbench::cli
