// An allocation that failed, as its allocator saw it.
#pragma once

#include <cstdint>
#include <optional>

namespace peakbench::record {

struct OutOfMemory {
  std::int64_t requested_bytes = 0, allocated_bytes = 0;
  std::int64_t limit_bytes = 0;  // 0: none
  // Of the CUDA caching allocator.
  std::optional<std::int64_t> reserved_bytes, largest_free_block_bytes, retries;
};

}  // namespace peakbench::record
