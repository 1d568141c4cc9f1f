// What others measured of the CUDA context's memory on a card, and published. It is outside of
// what PyTorch reserves, and depends on the driver: it is shown, and never part of a figure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fields.h"

namespace peakbench::emulator {

struct ContextMemory {
  std::uint64_t bytes = 0;
  std::string what;                 // "bare context, nothing allocated"
  std::string driver, cuda, torch;  // the versions of these; empty where the source does not say
  std::string source;
};

using ContextMemories = std::vector<ContextMemory>;

// The largest in emulator/cards (an H200's after a training): for cards without a measurement.
inline constexpr std::uint64_t kLargestContext = 767ull << 20;

enum class ContextSource { asked, measured, largest_known };

struct ContextMemoryTaken {
  std::uint64_t bytes = kLargestContext;
  ContextSource source = ContextSource::largest_known;
};
const char* word_of(ContextSource source);  // "option", "measured", "largest_known"
// "beside a CUDA context of 0.521 GiB", "with 2 CUDA contexts of up to 0.749 GiB", "with no CUDA
// context set aside". "Up to": the largest known of any card. `included`: the figure contains it.
std::string beside_text(const ContextMemoryTaken& context, std::size_t processes = 1,
                        bool included = false);

// The list `context_memory` of a card's file; empty if it has none. Throws FieldError.
ContextMemories read_context_memory(const Fields& card);

nlohmann::json to_json(const ContextMemories& measured);

// The most that was measured, or else the largest known of any card.
ContextMemoryTaken largest_of(const ContextMemories& measured);
// "534 MiB were measured on such a card (bare context; torch 2.10; github.com/...)", "how much it
// takes of this card is unknown"
std::string long_text(const ContextMemories& measured);

}  // namespace peakbench::emulator
