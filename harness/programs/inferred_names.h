#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace peakbench::programs {

// Which memory of a program is there for its ranks to exchange it, decided afterwards. Pure.
//
// - Buckets of DistributedDataParallel, by the line that makes them: communication, also where
//   gradients are views into them (gradient_as_bucket_view): they stay when gradients go.
// - What FSDP2 (fully_shard) allocates and gives to a collective: communication, unless it has a
//   name: what reduce-scatter leaves is the gradient. What it gathers parameters into is parameter.
// - Everything else that a collective was given: communication where it would be temporary, an
//   input that no model was called with, or kept and given in a step. A parameter that is broadcast
//   stays one, an activation that is reduced too.

// A storage that was handed to a collective.
struct Communicated {
  std::uint64_t allocation = 0;  // its event
  std::uint64_t event = 0;       // the event that followed
  std::string shape, dtype;
};

// Adds names to a trace whose phases are decided. `hooks`: of events in backward whose stack is
// that of a forward operator, the stack of the hook that made them.
void name_communication(trace::Trace& trace, const std::vector<Communicated>& given,
                        const std::unordered_map<std::uint64_t, std::int32_t>& hooks);

// Buffers that a program makes anew from their last state with torch.cat, step after step. Pure.

// Events of allocations: of what torch.cat made, and of the first and last tensor that it joined.
struct Join {
  std::uint64_t result = 0;
  std::vector<std::uint64_t> sources;  // each before `result`
};

// Names the states of each such buffer, in a trace whose phases are decided: kept, "joined buffer
// 1" (2, ...). A state is made by torch.cat from a state that the same line made, and at least one
// state is made from one of an earlier step. A model's input stays one, by that name; other names
// stay as they are. `joins` are in order.
void name_joined(trace::Trace& trace, const std::vector<Join>& joins);

}  // namespace peakbench::programs
