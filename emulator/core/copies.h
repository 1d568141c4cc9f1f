#pragma once

#include <cstdint>

#include "core/api.h"
#include "core/memory.h"

namespace peakbench::emulator {

// Bytes that are copied or set, on either side.

// Which ends of a copy must be memory that CUDA knows of: where the call says that it is a
// device's.
struct DeviceEnds {
  bool to = false, from = false;
};

// Copies whatever is on either side: bytes are kept in small device allocations and on the host.
// Reading device memory to the host enters the ledger with its caller; what no copy had put there
// reads as zeros.
PEAKBENCH_EMULATOR_API MemoryResult copy_bytes(void* to, const void* from, std::uint64_t bytes);

// Copies and fills as passed to the entry points of the runtime and the driver. Writes by PyTorch's
// own libraries are known from its operators. All others are reported here to the library that
// computes values. Nothing is copied during a capture: the graph's replay does that.

struct CopyCall {
  const void* code;          // that called the entry point
  std::uint64_t stream = 0;  // 0 for those that have none: the default stream, never captured
};

PEAKBENCH_EMULATOR_API MemoryResult asked_copy(const CopyCall& call, void* to, const void* from,
                                               std::uint64_t bytes, DeviceEnds ends = {});
// Rows of `width` bytes, `height` of them, each side with its own distance between rows.
PEAKBENCH_EMULATOR_API MemoryResult asked_copy_of_rows(const CopyCall& call, void* to,
                                                       std::uint64_t to_pitch, const void* from,
                                                       std::uint64_t from_pitch,
                                                       std::uint64_t width, std::uint64_t height,
                                                       DeviceEnds ends = {});
// `count` elements of `element_bytes` (1, 2 or 4).
PEAKBENCH_EMULATOR_API MemoryResult asked_fill(const CopyCall& call, void* to, std::uint32_t value,
                                               unsigned element_bytes, std::uint64_t count);

}  // namespace peakbench::emulator
