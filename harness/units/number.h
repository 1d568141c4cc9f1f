// What a number may be, wherever it comes from: a suite, a manifest, a run file, the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace peakbench {

// Ends included.
template <class Number>
struct Range {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();

  bool holds(Number value) const { return value >= least && value <= most; }  // not NaN
};

// No byte count, time or rate that anybody measured is larger; sums of many still fit 64 bits.
inline constexpr std::int64_t kMostMeasured = std::int64_t{1} << 53;

// Measured or published: 0 or more.
inline constexpr Range<std::int64_t> kMeasured{0, kMostMeasured};
inline constexpr Range<double> kMeasuredRate{0, static_cast<double>(kMostMeasured)};

// The whole text as a finite number in the range, as C writes one, without spaces or a plus sign;
// else nullopt.
std::optional<double> number_from_text(std::string_view text, Range<double> range = {});

// "an integer from 0 to 9", "an integer of 0 or more", "a finite number".
std::string words_of(Range<std::int64_t> range);
std::string words_of(Range<double> range);

}  // namespace peakbench
