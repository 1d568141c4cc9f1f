// Which memory of a program is there for its ranks to exchange it, decided afterwards. Pure.
//
// - Buckets of DistributedDataParallel, by the line that makes them: communication, also where
//   gradients are views into them (gradient_as_bucket_view): they stay when gradients go.
// - What FSDP2 (fully_shard) allocates and gives to a collective: communication, unless it has a
//   name: what reduce-scatter leaves is the gradient. What it gathers parameters into is parameter.
// - Everything else that a collective was given: communication where it would be temporary, an
//   input that no model was called with, or kept and given in a step. A parameter that is broadcast
//   stays one, an activation that is reduced too.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/trace.h"

namespace peakbench::program {

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

}  // namespace peakbench::program
