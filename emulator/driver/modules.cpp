// Modules compiled at run time: loaded without being looked at.
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
PEAKBENCH_ENTRY CUresult cuTensorMapEncodeIm2col(CUtensorMap* out, CUtensorMapDataType, cuuint32_t,
                                                 void*, const cuuint64_t*, const cuuint64_t*,
                                                 const int*, const int*, cuuint32_t, cuuint32_t,
                                                 const cuuint32_t*, CUtensorMapInterleave,
                                                 CUtensorMapSwizzle, CUtensorMapL2promotion,
                                                 CUtensorMapFloatOOBfill) {
  return entry([&] {
    *out = {};
    return CUDA_SUCCESS;
  });
}
PEAKBENCH_ENTRY CUresult cuTensorMapReplaceAddress(CUtensorMap*, void*) {
  return entry([] { return CUDA_SUCCESS; });
}
