// What is alive at a moment: a tree of modules, operators and allocations, and the largest ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/lifetimes.h"

namespace peakbench::trace {

struct AliveAllocation {
  std::uint64_t event = 0;  // its allocation
  Category category = Category::kTemporary;
  Phase phase = Phase::kBuild;  // it was allocated in
  std::int32_t step = kNone;
  std::int64_t requested_bytes = 0, block_bytes = 0;
  double share = 0;          // of the bytes alive: block_bytes / allocated_bytes
  std::string module, op;    // empty where unknown
  std::string name;          // empty where the recipe gave none
  std::string shape, dtype;  // empty where unknown
};

// A module (`encoder.layers.7`), inside it its modules and operators, inside these the allocations.
// Children are in order of bytes, the largest first.
struct AliveNode {
  enum class Kind : std::uint8_t { kModule, kOperator, kAllocation };
  Kind kind = Kind::kModule;
  std::string label;             // the module's last part, the operator, the allocation's name
  std::int64_t bytes = 0;        // of blocks: children's sum to it
  double share = 0;              // of the bytes alive
  std::int64_t allocations = 0;  // at or below it
  std::size_t allocation = 0;    // kAllocation: index in Alive::allocations
  std::vector<AliveNode> children;
};

struct Alive {
  std::uint64_t event = 0;
  Phase phase = Phase::kBuild;
  std::int32_t step = kNone;
  std::int64_t allocated_bytes = 0, requested_bytes = 0;
  std::vector<AliveAllocation> allocations;  // the largest first, then the older
  AliveNode root;                            // label empty, bytes = allocated_bytes
};

// Allocations alive in the space after `event`; throws std::out_of_range for an unknown event. A
// named allocation without a module belongs to the module in its name: `encoder.ln.weight` to
// `encoder.ln`. Without a module or operator it is under `(no module)`, `(no operator)`.
Alive alive_at(const Trace& trace, const std::vector<Lifetime>& lifetimes, std::uint64_t event,
               int space = kOwnSpace);

}  // namespace peakbench::trace
