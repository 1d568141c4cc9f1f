#include "cli/whole_number.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace peakbench::cli {

CLI::Validator whole_number(std::int64_t least) {
  const auto check = [least](const std::string& text) -> std::string {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, problem] = std::from_chars(text.data(), end, value);
    if (problem == std::errc{} && stop == end && value >= least) return "";
    return fmt::format("Value {} not in range {} to {}", text, least,
                       std::numeric_limits<std::int64_t>::max());
  };
  return CLI::Validator(check, "");
}

}  // namespace peakbench::cli
