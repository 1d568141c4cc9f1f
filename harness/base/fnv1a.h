// FNV-1a of Fowler, Noll and Vo (isthe.com/chongo/tech/comp/fnv): short, and stable by definition.
// For names and for noticing changes; not safe against deliberate collisions.
#pragma once

#include <cstdint>
#include <string_view>

namespace peakbench {

inline constexpr std::uint64_t kFnv1a64Start = 0xcbf29ce484222325u;

// Of a text that comes in pieces: `hash` is what the piece before gave.
constexpr std::uint64_t fnv1a_64(std::string_view text, std::uint64_t hash = kFnv1a64Start) {
  for (const char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return hash;
}

constexpr std::uint32_t fnv1a_32(std::string_view text) {
  std::uint32_t hash = 0x811c9dc5u;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x1000193u;
  return hash;
}

}  // namespace peakbench
