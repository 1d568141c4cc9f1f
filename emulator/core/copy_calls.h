// Copies and fills as the entry points of the runtime and the driver are asked for them. What
// PyTorch's own libraries write, its operators say; of what others write, whoever computes values
// is told here. In a capture nothing is copied: that is for the graph's replay.
#pragma once

#include <cstdint>

#include "core/api.h"
#include "core/copies.h"

namespace peakbench::emulator {

struct CopyCall {
  const void* code;          // that called the entry point
  std::uint64_t stream = 0;  // 0 for those that have none: the default stream, never captured
};

PEAKBENCH_EMULATOR_API MemoryResult asked_copy(const CopyCall& call, void* to, const void* from,
                                               std::uint64_t bytes, DeviceEnds ends = {});
PEAKBENCH_EMULATOR_API MemoryResult asked_copy_of_rows(const CopyCall& call, void* to,
                                                       std::uint64_t to_pitch, const void* from,
                                                       std::uint64_t from_pitch,
                                                       std::uint64_t width, std::uint64_t height,
                                                       DeviceEnds ends = {});
PEAKBENCH_EMULATOR_API MemoryResult asked_fill(const CopyCall& call, void* to, std::uint32_t value,
                                               unsigned element_bytes, std::uint64_t count);

}  // namespace peakbench::emulator
