// Sizes as people type them, and as messages say them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace peakbench {

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

// A figure's unit as people publish it, in any case: bytes; nullopt for any other. "GB" may mean
// either in the field's literature: the letter is taken, 10^9.
std::optional<double> bytes_of(double value, std::string_view unit);
inline constexpr const char* kMemoryUnits = "bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB";

// "5.670 GiB": three decimals, as in tables. Limits that nobody measured have fewer.
std::string gib_text(std::int64_t bytes, int decimals = 3);

// In a unit that shows small figures too: "512 B", "3.0 KiB", "12.0 MiB", "0.115 GiB".
std::string size_text(std::uint64_t bytes);

}  // namespace peakbench
