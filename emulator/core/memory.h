#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/api.h"

namespace peakbench::emulator {

// Which bytes of a small allocation were put there by a copy or a fill that the host asked for, and
// when. Of the others nothing is known: a kernel may have meant to write them, and no kernel runs
// here.

// "When" is the number of pieces of device work (launches, library calls) that were submitted
// before. A byte that is read at the same number is certainly the byte that was written. At a later
// number, a kernel may have changed it.
class KeptBytes {
 public:
  void put(std::uint64_t offset, std::uint64_t bytes, std::uint64_t when);
  void forget(std::uint64_t offset, std::uint64_t bytes);
  // The oldest `when` of the bytes; nullopt when some were never put there.
  std::optional<std::uint64_t> since(std::uint64_t offset, std::uint64_t bytes) const;
  struct Piece {
    std::uint64_t offset, bytes, when;
  };
  // Which of the bytes were put there, in order.
  std::vector<Piece> pieces(std::uint64_t offset, std::uint64_t bytes) const;
  // Takes over what another allocation knows of the bytes that are copied from it. `from` may be
  // null: it knows of none.
  void copy(std::uint64_t to, const KeptBytes* from, std::uint64_t from_offset,
            std::uint64_t bytes);

 private:
  struct Run {
    std::uint64_t end;
    std::uint64_t when;
  };
  std::map<std::uint64_t, Run> runs_;  // by start; they do not overlap
};

// Memory of the devices and of the host, as CUDA allocates it: whole blocks, or addresses and
// memory separately.

inline constexpr std::uint64_t kPage = 2ull << 20;  // device memory is handed out in these
inline constexpr std::uint64_t kKeptBytes = kPage;  // allocations up to this keep real bytes

// All but the last by the number that they have in the runtime and in the driver.
enum class MemoryResult { ok = 0, invalid_value = 1, out_of_memory = 2, no_address_space };

enum class MemoryKind {
  unknown,      // not CUDA's: ordinary host memory
  device,       // cudaMalloc
  reservation,  // cuMemAddressReserve, nothing mapped there
  mapping,      // cuMemMap
  pinned,       // cudaHostAlloc
  registered,   // cudaHostRegister
  managed,      // cudaMallocManaged
};

struct MemoryPlace {
  MemoryKind kind;
  int device;  // -1 for the host's
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint64_t handle;   // of a mapping
  std::uint64_t ordinal;  // unique in the process

  bool is_on_device() const { return kind == MemoryKind::device || kind == MemoryKind::mapping; }
  // Page-locked memory of the host.
  bool is_locked() const { return kind == MemoryKind::pinned || kind == MemoryKind::registered; }
};

PEAKBENCH_EMULATOR_API MemoryResult allocate_device(int device, std::uint64_t bytes, void** out);
PEAKBENCH_EMULATOR_API MemoryResult allocate_managed(int device, std::uint64_t bytes, void** out);
// Addresses for memory of another process, which is charged for it. Nothing is known of its bytes.
PEAKBENCH_EMULATOR_API MemoryResult open_memory_of_another(int device, std::uint64_t bytes,
                                                           void** out);
PEAKBENCH_EMULATOR_API MemoryResult allocate_pinned(std::uint64_t bytes, void** out);
PEAKBENCH_EMULATOR_API MemoryResult register_host(void* base, std::uint64_t bytes);
PEAKBENCH_EMULATOR_API MemoryResult unregister_host(void* base);
// Frees what one of these functions gave; `pinned` says which of the two families is
// meant.
PEAKBENCH_EMULATOR_API MemoryResult release(void* base, bool pinned);
// What is at an address; kind unknown where CUDA knows of nothing.
PEAKBENCH_EMULATOR_API MemoryPlace find_place(const void* address);
PEAKBENCH_EMULATOR_API void memory_info(int device, std::uint64_t* free_bytes,
                                        std::uint64_t* total_bytes);

// Virtual memory management: addresses and memory apart.
PEAKBENCH_EMULATOR_API MemoryResult reserve_addresses(std::uint64_t bytes, std::uint64_t alignment,
                                                      std::uint64_t* out);
PEAKBENCH_EMULATOR_API MemoryResult free_addresses(std::uint64_t base, std::uint64_t bytes);
PEAKBENCH_EMULATOR_API MemoryResult create_memory(int device, std::uint64_t bytes,
                                                  std::uint64_t* handle);
PEAKBENCH_EMULATOR_API MemoryResult retain_memory(std::uint64_t handle);
PEAKBENCH_EMULATOR_API MemoryResult release_memory(std::uint64_t handle);
PEAKBENCH_EMULATOR_API MemoryResult memory_of_handle(std::uint64_t handle, int* device,
                                                     std::uint64_t* bytes);
PEAKBENCH_EMULATOR_API MemoryResult map_memory(std::uint64_t base, std::uint64_t bytes,
                                               std::uint64_t offset, std::uint64_t handle);
PEAKBENCH_EMULATOR_API MemoryResult unmap_memory(std::uint64_t base, std::uint64_t bytes);

}  // namespace peakbench::emulator
