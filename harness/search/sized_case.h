// One case in other sizes: another value of what is searched along, another memory of its card.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planning/plan.h"

namespace peakbench::search {

// The allocator takes memory from the card in pieces of this size, so that a limit between two
// multiples of it is as good as the smaller one.
inline constexpr std::int64_t kGranularityBytes = 2 << 20;

// A card's memory that no case fills: as good as no limit.
inline constexpr std::int64_t kNoLimitBytes = std::int64_t{8} << 40;

// What is searched along.
enum class Along {
  kNothing,  // the case as it is
  kBatch,
  kSequence,
  kLayers,   // the model's option `layers`
  kRank,     // the option `rank` of a strategy of the stack
  kProgram,  // a placeholder of a program's command
};

// "batch", as typed; empty for kNothing.
std::string word_of(Along along);
// Throws ConfigError with the words that there are.
Along along_from(const std::string& word);
// Display names: "batch size", "sequence length", "layers", "rank".
std::string label_of(Along along);

struct Limits {
  std::int64_t first = 1, last = 1;
};

// The values that the case can be given, by the manifests of its plugins. nullopt: it cannot be
// given any; `why` says why.
std::optional<Limits> limits_of(const planning::PlannedCase& planned, Along along,
                                const planning::Found& plugins, std::string& why);

// The case with that value; its command stays as it is. Not for kProgram.
planning::PlannedCase with_value(planning::PlannedCase planned, Along along, std::int64_t value,
                                 const planning::Found& plugins);
// On the same emulated card with so much memory.
planning::PlannedCase with_memory(planning::PlannedCase planned, std::int64_t bytes);
// On the same emulated card with so much of it set aside for the CUDA context.
planning::PlannedCase with_context(planning::PlannedCase planned, std::int64_t bytes);

}  // namespace peakbench::search
