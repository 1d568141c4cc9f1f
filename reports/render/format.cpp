#include "reports/render/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/nearest.h"
#include "base/numbers.h"

namespace peakbench::reports {
namespace {

std::string with_sign(double value, const std::string& magnitude) {
  return (value < 0 ? kMinus : "+") + magnitude;
}

std::string with_separators(std::string digits) {
  const auto dot = std::min(digits.find('.'), digits.size());
  for (auto at = static_cast<std::ptrdiff_t>(dot) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return digits;
}

std::string not_finite(double value) {
  if (std::isnan(value)) return "NaN";
  return std::string(value < 0 ? kMinus : "") + "\u221E";
}

}  // namespace

std::string gib(std::int64_t bytes) {
  if (bytes == 0) return "0";
  const double value = static_cast<double>(bytes) / kGiB;
  if (std::abs(value) < 0.0005) return "<0.001";
  return with_separators(fmt::format("{:.3f}", value));
}

std::string signed_gib(std::int64_t bytes) {
  if (bytes == 0) return "0";
  return with_sign(static_cast<double>(bytes), gib(std::abs(bytes)));
}

std::string grouped(std::int64_t value) {
  const std::string digits = with_separators(fmt::format("{}", std::abs(value)));
  return value < 0 ? kMinus + digits : digits;
}

std::string unless_zero(std::size_t count) { return count == 0 ? "" : grouped(count); }

std::string count_of(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string signed_grouped(std::int64_t value) { return (value > 0 ? "+" : "") + grouped(value); }

double ratio_of(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string percent(double fraction) {
  return std::isfinite(fraction) ? fmt::format("{:.1f}", fraction * 100) : not_finite(fraction);
}

std::string signed_percent(double fraction) {
  if (std::isnan(fraction)) return not_finite(fraction);
  const std::string magnitude = percent(std::abs(fraction));
  return magnitude == "0.0" ? magnitude : with_sign(fraction, magnitude);
}

std::string decimal(double value, int significant_digits) {
  if (!std::isfinite(value)) return not_finite(value);
  if (value == 0) return "0";
  const int magnitude = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const int decimals = std::clamp(significant_digits - 1 - magnitude, 0, 12);
  const std::string digits = with_separators(fmt::format("{:.{}f}", std::abs(value), decimals));
  return value < 0 ? kMinus + digits : digits;
}

std::string plain_number(double value) {
  if (!std::isfinite(value)) return not_finite(value);
  if (value == std::floor(value) && std::abs(value) < 1e15)
    return fmt::format("{:.0f}", value + 0.0);  // never "-0"
  return fmt::format("{}", value);
}

std::string fraction(double value) {
  std::string text = fmt::format("{:.4f}", std::isfinite(value) ? value : 0);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string tenths(double value) {
  return fraction(static_cast<double>(std::llround(value * 10)) / 10);
}

std::string scientific(double value) {
  if (!std::isfinite(value)) return not_finite(value);
  return value == 0 ? "0" : fmt::format("{:.1e}", value);
}

std::string milliseconds(std::int64_t nanoseconds) {
  return decimal(static_cast<double>(nanoseconds) / 1e6, 4);
}

std::string duration(std::int64_t nanoseconds) {
  const double seconds = static_cast<double>(nanoseconds) / 1e9;
  if (seconds < 1) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 60) return fmt::format("{:.1f} s", seconds);
  const auto whole = std::int64_t{std::llround(seconds)};
  if (whole < 3600) return fmt::format("{} min {:02d} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02d} min", whole / 3600, whole % 3600 / 60);
}

std::string date_for_people(const std::string& rfc3339) {
  const bool shaped = rfc3339.size() >= 20 && rfc3339[10] == 'T' && rfc3339.back() == 'Z';
  return shaped ? rfc3339.substr(0, 10) + " " + rfc3339.substr(11, 5) + " UTC" : rfc3339;
}

std::optional<PublishedRate> rate_of(double value, const std::string& unit) {
  const std::string name = lower(unit);
  const auto is = [&](std::initializer_list<const char*> names) {
    return std::ranges::any_of(names, [&](const char* n) { return name == n; });
  };
  if (is({"tok/s", "tokens/s", "token/s", "tps"}))
    return PublishedRate{Rate::kTokensPerSecond, value};
  if (is({"samples/s", "sample/s", "img/s", "images/s", "image/s"})) {
    return PublishedRate{Rate::kSamplesPerSecond, value};
  }
  if (is({"s/it", "s/step", "s"})) return PublishedRate{Rate::kSecondsPerStep, value};
  if (is({"ms/it", "ms/step", "ms"})) return PublishedRate{Rate::kSecondsPerStep, value / 1e3};
  return std::nullopt;
}

}  // namespace peakbench::reports
