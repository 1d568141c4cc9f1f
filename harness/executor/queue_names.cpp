#include "executor/queue_names.h"

#include <charconv>
#include <limits>
#include <system_error>

namespace peakbench::executor {

std::optional<int> number_from(std::string_view text) {
  int number = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (text.empty() || error != std::errc() || rest != end || number < 0) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;     // nobody writes it so
  if (number == std::numeric_limits<int>::max()) return std::nullopt;  // there is no next one
  return number;
}

std::optional<std::pair<std::size_t, int>> end_from_name(std::string_view name) {
  constexpr std::string_view kEnding = ".json";
  const auto dash = name.find('-');
  if (dash == std::string_view::npos || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  if (dash > name.size()) return std::nullopt;
  const auto task = number_from(name.substr(0, dash)), attempt = number_from(name.substr(dash + 1));
  if (!task || !attempt) return std::nullopt;
  return std::pair(static_cast<std::size_t>(*task), *attempt);
}

}  // namespace peakbench::executor
