#include "base/numbers.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "base/nearest.h"

namespace peakbench {
namespace {

template <class Number>
std::string words(const Range<Number>& range, const char* what) {
  const Range<Number> any;
  if (range.least > any.least && range.most < any.most)
    return fmt::format("{} from {} to {}", what, range.least, range.most);
  if (range.least > any.least) return fmt::format("{} of {} or more", what, range.least);
  if (range.most < any.most) return fmt::format("{} of {} or less", what, range.most);
  return what;
}

template <class Number>
std::optional<Number> whole_text(std::string_view text, const Range<Number>& range) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const bool whole = error == std::errc() && rest == end;
  return whole && range.holds(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> number_from_text(std::string_view text, Range<double> range) {
  return whole_text(text, range);
}

std::optional<std::int64_t> integer_from_text(std::string_view text, Range<std::int64_t> range) {
  return whole_text(text, range);
}

std::string words_of(Range<std::int64_t> range) { return words(range, "an integer"); }

std::string words_of(Range<double> range) { return words(range, "a finite number"); }

namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"KiB", 1024.0},
                                       {"MiB", 1024.0 * 1024},
                                       {"GiB", kGiB},
                                       {"TiB", 1024.0 * kGiB},
                                       {"kB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12}}};

}  // namespace

std::optional<std::int64_t> bytes_from_text(std::string_view text) {
  constexpr double kMost = 1e18;
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc()) return std::nullopt;
  std::string_view name(rest, static_cast<std::size_t>(end - rest));
  if (name.starts_with(' ')) name.remove_prefix(1);
  for (const auto& unit : kUnits) {
    if (unit.name != name) continue;
    const double bytes = value * unit.bytes;
    const bool fits = bytes >= 1 && bytes <= kMost;
    return fits ? std::optional<std::int64_t>(std::llround(bytes)) : std::nullopt;
  }
  return std::nullopt;
}

std::string why_no_memory_size(std::string_view text) {
  const auto bytes = bytes_from_text(text);
  if (!bytes) return fmt::format("expected {}", kExpectedBytes);
  constexpr std::int64_t kLeast = 1 << 20;
  const bool alone = text.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!alone || *bytes >= kLeast) return "";
  return fmt::format("that is {} bytes; the unit is missing, as in {}GiB", text, text);
}

std::optional<double> bytes_of(double value, std::string_view unit) {
  const auto name = lower(unit);
  if (name == "bytes") return value;
  for (const auto& known : kUnits)
    if (!known.name.empty() && name == lower(known.name)) return value * known.bytes;
  return std::nullopt;
}

std::string gib_text(std::int64_t bytes, int decimals) {
  return fmt::format("{:.{}f} GiB", static_cast<double>(bytes) / kGiB, decimals);
}

std::string size_text(std::uint64_t bytes) {
  constexpr double kKiB = 1024.0, kMiB = kKiB * 1024;
  const auto size = static_cast<double>(bytes);
  if (size >= kGiB / 10)
    return gib_text(static_cast<std::int64_t>(bytes));  // three digits at least
  if (size >= kMiB) return fmt::format("{:.1f} MiB", size / kMiB);
  if (size >= kKiB) return fmt::format("{:.1f} KiB", size / kKiB);
  return fmt::format("{} B", bytes);
}

}  // namespace peakbench
