#pragma once

#include <cstdint>
#include <optional>

#include "core/api.h"
#include "core/card.h"
#include "core/cubin.h"

namespace peakbench::emulator {

// The kernels of the modules that a process loads.

// Of a cubin, or of the code in a fat binary that the card would run; empty for PTX. They last
// until they are forgotten, and are the core's to free.
PEAKBENCH_EMULATOR_API const Kernels* read_kernels(const void* image);
PEAKBENCH_EMULATOR_API void forget_kernels(const Kernels* kernels);

// How many blocks of a kernel a multiprocessor of the card holds at the same time, by NVIDIA's own
// calculator (cuda_occupancy.h).

// Registers a thread of a kernel with an unknown number.
inline constexpr int kTypicalRegisters = 32;

// What a program sets of a kernel (cudaFuncSetAttribute).
struct KernelSettings {
  std::optional<std::uint64_t> max_dynamic_shared_bytes;
  int carveout = -1;  // shared memory's part of the L1 cache, in percent; -1: not set
};

struct BlockShape {
  int threads = 0;
  std::uint64_t dynamic_shared_bytes = 0;
};

// 0: the kernel cannot run in such a block.
PEAKBENCH_EMULATOR_API int blocks_per_multiprocessor(const CardFacts& card,
                                                     const KernelFacts& kernel,
                                                     const KernelSettings& settings,
                                                     const BlockShape& block);
// By the registers of the kernel, too.
PEAKBENCH_EMULATOR_API int max_threads_per_block(const CardFacts& card, const KernelFacts& kernel);
PEAKBENCH_EMULATOR_API std::uint64_t max_dynamic_shared_bytes(const CardFacts& card,
                                                              const KernelFacts& kernel,
                                                              const KernelSettings& settings);
// Whether a program may ask for so much dynamic shared memory in the kernel's blocks.
PEAKBENCH_EMULATOR_API bool may_set_dynamic_shared(const CardFacts& card, const KernelFacts& kernel,
                                                   std::int64_t bytes);
// Of the system, in each block: from compute capability 8.0 on.
PEAKBENCH_EMULATOR_API std::uint64_t reserved_shared_bytes(const CardFacts& card);

}  // namespace peakbench::emulator
