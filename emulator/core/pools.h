#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/core.h"

namespace peakbench::emulator {

// The addresses of one memory pool: its chunks, and which pieces of them are free.

class PoolSpace {
 public:
  void add_chunk(std::uint64_t base, std::uint64_t bytes);
  // The smallest free piece that is large enough gives them, the lowest of several; 0: none is.
  std::uint64_t take(std::uint64_t bytes);
  void give_back(std::uint64_t base, std::uint64_t bytes);
  // Removes the largest chunk without pieces in use. Returns its base and bytes.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> remove_free_chunk();
  // The chunk that contains an address of the pool.
  std::pair<std::uint64_t, std::uint64_t> chunk_of(std::uint64_t address) const;
  std::uint64_t bytes() const { return bytes_; }
  bool in_use() const { return free_bytes_ != bytes_; }

 private:
  using Pieces = std::map<std::uint64_t, std::uint64_t>;  // base -> bytes

  Pieces chunks_, free_;  // free pieces do not reach over the end of a chunk
  std::uint64_t bytes_ = 0, free_bytes_ = 0;
};

// Pools of memory allocated in the order of streams (cudaMallocAsync). Each pool takes memory of
// its device in large steps and allocates pieces of it.
//
// Documented: a piece is a multiple of 512 bytes, and a synchronization returns unused memory of a
// pool down to its release threshold.
//
// Not documented:
//
// - How a pool grows. 32 MiB for a piece of 12 bytes were seen (cupy/cupy#5177), so steps are
//   multiples of that here.
// - The layout of pieces, and whether the driver moves memory.
//
// So the bytes in use are exact, and the reserved bytes are a model (Fact::pool_growth).

struct PoolFigures {
  std::uint64_t reserved, peak_reserved;  // memory of the device
  std::uint64_t used, peak_used;          // pieces that were handed out
};

// Pools are identified by numbers, each device's default pool first. 0 is no pool.
PEAKBENCH_EMULATOR_API std::uint64_t default_pool(int device);
// `most_bytes`: how much it may reserve, 0 without a limit.
PEAKBENCH_EMULATOR_API std::uint64_t create_pool(int device, std::uint64_t most_bytes);
// The pool ends when its last piece is freed. False: unknown, or a default pool.
PEAKBENCH_EMULATOR_API bool destroy_pool(std::uint64_t pool);
PEAKBENCH_EMULATOR_API bool pool_exists(std::uint64_t pool);
// The pool that cudaMallocAsync takes of, the device's own unless another was set.
PEAKBENCH_EMULATOR_API std::uint64_t current_pool(int device);
PEAKBENCH_EMULATOR_API bool set_current_pool(int device, std::uint64_t pool);

// A piece is given back by release().
PEAKBENCH_EMULATOR_API MemoryResult allocate_from_pool(std::uint64_t pool, std::uint64_t bytes,
                                                       void** out);
// Of a pool that exists:
PEAKBENCH_EMULATOR_API PoolFigures pool_figures(std::uint64_t pool);
// Makes a peak what is current.
PEAKBENCH_EMULATOR_API void reset_peak(std::uint64_t pool, std::uint64_t PoolFigures::*peak,
                                       std::uint64_t PoolFigures::*current);
PEAKBENCH_EMULATOR_API std::uint64_t release_threshold(std::uint64_t pool);
PEAKBENCH_EMULATOR_API void set_release_threshold(std::uint64_t pool, std::uint64_t bytes);
// Gives memory back to the device until no more than this is reserved, as far as it is not in use.
PEAKBENCH_EMULATOR_API void trim_pool(std::uint64_t pool, std::uint64_t bytes);

// Who calls cudaMallocAsync. Where PyTorch's allocator does, its counts are its pools'.
PEAKBENCH_EMULATOR_API void pool_is_used_by(const void* caller);

}  // namespace peakbench::emulator
