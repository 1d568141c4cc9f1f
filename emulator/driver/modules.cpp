// Modules compiled at run time: loaded without being looked at, launched without being run.
#include <algorithm>

#include "driver/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

CUresult loaded(CUmodule* out) {
  return entry([&] {
    *out = static_cast<CUmodule>(new_handle());
    return CUDA_SUCCESS;
  });
}

CUresult launched(CUstream stream, unsigned threads) {
  return entry([&] {
    if (!threads || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_exists(number(stream))) return CUDA_ERROR_INVALID_HANDLE;
    count_launch(number(stream));
    return CUDA_SUCCESS;
  });
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuModuleLoad(CUmodule* out, const char*) { return loaded(out); }
PEAKBENCH_ENTRY CUresult cuModuleLoadData(CUmodule* out, const void*) { return loaded(out); }
PEAKBENCH_ENTRY CUresult cuModuleLoadDataEx(CUmodule* out, const void*, unsigned, CUjit_option*,
                                            void**) {
  return loaded(out);
}
PEAKBENCH_ENTRY CUresult cuModuleUnload(CUmodule) {
  return entry([] { return CUDA_SUCCESS; });
}

PEAKBENCH_ENTRY CUresult cuModuleGetFunction(CUfunction* out, CUmodule, const char*) {
  return entry([&] {
    *out = static_cast<CUfunction>(new_handle());
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuFuncGetAttribute(int* out, CUfunction_attribute which, CUfunction) {
  return entry([&] {
    switch (which) {
      case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *out = 1024;
        break;
      case CU_FUNC_ATTRIBUTE_NUM_REGS:
        *out = 32;
        break;
      case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *out = card().binary_arch;
        break;
      case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *out = static_cast<int>(card().shared_memory_per_block_bytes);
        break;
      default:
        *out = 0;
    }
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int) {
  return entry([] { return CUDA_SUCCESS; });
}
PEAKBENCH_ENTRY CUresult cuFuncSetCacheConfig(CUfunction, CUfunc_cache) {
  return entry([] { return CUDA_SUCCESS; });
}

PEAKBENCH_ENTRY CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned x,
                                        unsigned y, unsigned z, unsigned, CUstream stream, void**,
                                        void**) {
  return launched(stream, x * y * z);
}

PEAKBENCH_ENTRY CUresult cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned,
                                                   unsigned x, unsigned y, unsigned z, unsigned,
                                                   CUstream stream, void**) {
  return launched(stream, x * y * z);
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction,
                                                                     int block_size,
                                                                     size_t shared_bytes) {
  return entry([&] {
    unmodelled("occupancy: register use of kernels");
    const CardFacts& facts = card();
    std::uint64_t blocks = facts.max_threads_per_multiprocessor / std::max(block_size, 1);
    if (shared_bytes)
      blocks = std::min(blocks, facts.shared_memory_per_multiprocessor_bytes / shared_bytes);
    *out = static_cast<int>(std::max<std::uint64_t>(
        1, std::min<std::uint64_t>(blocks, facts.max_blocks_per_multiprocessor)));
    return CUDA_SUCCESS;
  });
}

// A descriptor of a tensor for the copy engine of sm_90 and later: 128 opaque bytes that only
// kernels read.
PEAKBENCH_ENTRY CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType, cuuint32_t,
                                                void*, const cuuint64_t*, const cuuint64_t*,
                                                const cuuint32_t*, const cuuint32_t*,
                                                CUtensorMapInterleave, CUtensorMapSwizzle,
                                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return entry([&] {
    *out = {};
    return CUDA_SUCCESS;
  });
}
