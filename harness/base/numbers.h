#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace peakbench {

// What a number may be, wherever it comes from: a suite, a manifest, a run file, the command line.

// Ends included.
template <class Number>
struct Range {
  Number least = std::numeric_limits<Number>::lowest();
  Number most = std::numeric_limits<Number>::max();

  bool holds(Number value) const { return value >= least && value <= most; }  // not NaN
};

// The largest byte count, time or rate accepted as a measurement. Sums of many still fit 64 bits.
inline constexpr std::int64_t kMostMeasured = std::int64_t{1} << 53;

// Measured or published: 0 or more.
inline constexpr Range<std::int64_t> kMeasured{0, kMostMeasured};
inline constexpr Range<double> kMeasuredRate{0, static_cast<double>(kMostMeasured)};

// The whole text as a finite number in the range, as C writes one, without spaces or a plus sign;
// else nullopt.
std::optional<double> number_from_text(std::string_view text, Range<double> range = {});

// The whole text as an integer in the range, without spaces or a plus sign; else nullopt.
std::optional<std::int64_t> integer_from_text(std::string_view text,
                                              Range<std::int64_t> range = {});

// "an integer from 0 to 9", "an integer of 0 or more", "a finite number".
std::string words_of(Range<std::int64_t> range);
std::string words_of(Range<double> range);

// Sizes as users type them, and as messages print them.

inline constexpr double kGiB = 1024.0 * 1024 * 1024;  // bytes

// "60GiB", "1.5 GB", "4096" (bytes) with B, KiB, MiB, GiB, TiB, kB, MB, GB, TB; nullopt for
// anything else, for 0 and for more than 10^18 bytes.
std::optional<std::int64_t> bytes_from_text(std::string_view text);

// For messages: what `bytes_from_text` wants.
inline constexpr const char* kExpectedBytes =
    "a size above 0 with B, KiB, MiB, GiB, TiB, kB, MB, GB or TB, like 60GiB, or bytes alone";

// Why that is no size of a card's or a host's memory; empty where it is one. A number alone below
// 1 MiB was meant in another unit.
std::string why_no_memory_size(std::string_view text);

// Bytes of a published unit, in any case; nullopt for unknown units. "GB" may mean either in the
// literature; here it is 10^9.
std::optional<double> bytes_of(double value, std::string_view unit);
inline constexpr const char* kMemoryUnits = "bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB";

// "5.670 GiB": three decimals, as in tables. Limits that are not measured have fewer.
std::string gib_text(std::int64_t bytes, int decimals = 3);

// In a unit that shows small figures too: "512 B", "3.0 KiB", "12.0 MiB", "0.115 GiB".
std::string size_text(std::uint64_t bytes);

}  // namespace peakbench
