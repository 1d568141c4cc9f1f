// Figures as readers see them: GiB everywhere, three decimals; counts with separators; times in a
// suitable unit. Exact bytes are shown next to them. Pure, independent of the locale.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace peakbench::reports {

inline constexpr const char* kMinus = "\u2212";

std::string gib(std::int64_t bytes);         // "5.670"; "<0.001" for little, "0" for none
std::string signed_gib(std::int64_t bytes);  // "−1.102", "+0.010", "0"
std::string grouped(std::int64_t value);     // "6,087,938,768"
template <std::integral Count>
std::string grouped(Count count) {
  return grouped(static_cast<std::int64_t>(count));
}
std::string unless_zero(std::size_t count);                        // grouped; "" for 0
std::string count_of(std::size_t count, const std::string& what);  // "1 case", "1200 cases"
std::string signed_grouped(std::int64_t value);                    // "−1,024", "+512", "0"
double ratio_of(std::int64_t part, std::int64_t whole);            // 0 if `whole` is 0
// What is no finite number is "NaN", "∞" or "−∞" in all of these.
std::string percent(double fraction);         // 0.1944 -> "19.4"
std::string signed_percent(double fraction);  // -0.1944 -> "−19.4", "0.0"
std::string decimal(double value,
                    int significant_digits);  // "1,234", "12.3", "0.0123": never an exponent
std::string plain_number(double value);       // shortest text that reads back as the same: "4.8"
std::string fraction(double value);    // for geometry: four decimals, a dot, no trailing zeros
                                       // 0 for what is not finite
std::string tenths(double value);      // the same with one decimal
std::string scientific(double value);  // "1.2e-06", "0"
std::string milliseconds(std::int64_t nanoseconds);  // "812.3"
std::string duration(std::int64_t nanoseconds);      // "812 ms", "12.3 s", "3 min 05 s"
std::string date_for_people(
    const std::string& rfc3339);  // "2026-11-03 14:05 UTC"; as given if not such a date

enum class Rate { kSamplesPerSecond, kTokensPerSecond, kSecondsPerStep };
struct PublishedRate {
  Rate rate;
  double value;  // in the rate's own unit
};
std::optional<PublishedRate> rate_of(double value, const std::string& unit);

}  // namespace peakbench::reports
