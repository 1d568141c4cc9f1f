// What a program asks and sets of its kernels.
#include "core/kernels.h"
#include "runtime/errors.h"
#include "runtime/kernels.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

// What is not known is as a small kernel has it, and a condition.
KernelFacts facts_or_typical(const ProgramKernel& kernel) {
  if (kernel.facts) return *kernel.facts;
  enter(Fact::unknown_kernel);
  KernelFacts facts;
  facts.registers = kTypicalRegisters;
  return facts;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* out, const void* function) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    const ProgramKernel kernel = kernel_of(function);
    const KernelFacts facts = facts_or_typical(kernel);
    *out = {};
    out->sharedSizeBytes = facts.static_shared_bytes;
    out->localSizeBytes = facts.local_bytes;
    out->maxThreadsPerBlock = max_threads_per_block(card(), facts);
    out->numRegs = facts.registers;
    // cub chooses its tuning by these: the code in this LibTorch that the card would run.
    out->ptxVersion = out->binaryVersion = facts.arch ? facts.arch : card().binary_arch;
    out->maxDynamicSharedSizeBytes =
        static_cast<int>(max_dynamic_shared_bytes(card(), facts, kernel.settings));
    out->preferredShmemCarveout = kernel.settings.carveout;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute,
                                                 int value) {
  return entry([&] {
    ProgramKernel kernel = kernel_of(function);
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
      kernel.settings.carveout = value;
    if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
      if (!may_set_dynamic_shared(card(), kernel.facts.value_or(KernelFacts{}), value))
        return cudaErrorInvalidValue;
      kernel.settings.max_dynamic_shared_bytes = value;
    }
    set(function, kernel.settings);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) {
  return entry([] { return cudaSuccess; });
}

PEAKBENCH_ENTRY cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* out, const void* function, int block_size, size_t shared_bytes, unsigned) {
  return entry([&] {
    if (!out || block_size <= 0) return cudaErrorInvalidValue;
    const ProgramKernel kernel = kernel_of(function);
    *out = blocks_per_multiprocessor(card(), facts_or_typical(kernel), kernel.settings,
                                     {block_size, shared_bytes});
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* out,
                                                                          const void* function,
                                                                          int block_size,
                                                                          size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block_size,
                                                                shared_bytes, 0);
}
