#include "cli/quantities.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

#include "errors/errors.h"
#include "units/bytes.h"

namespace peakbench::cli {
std::int64_t bytes_from(const std::string& text, const std::string& option) {
  const auto bytes = bytes_from_text(text);
  if (!bytes)
    throw ConfigError(fmt::format("{}: expected {}, got \"{}\"", option, kExpectedBytes, text));
  return *bytes;
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
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || rest != end || number < 1 || number > most)
      throw ConfigError(
          fmt::format("{}: \"{}\" is not a whole number from 1 to {}", option, text, most));
    result.push_back(number);
  }
  return result;
}

}  // namespace peakbench::cli
