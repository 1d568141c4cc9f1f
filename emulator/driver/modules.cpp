// Modules compiled at run time: of their kernels, only the parameters are looked at.
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "driver/errors.h"
#include "driver/functions.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

using Kernels = std::map<std::string, ParameterSizes>;

struct Loaded {
  std::mutex mutex;
  std::unordered_map<CUmodule, Kernels> modules;
  std::unordered_map<CUfunction, ParameterSizes> functions;
};

Loaded& known() {
  static auto* const loaded = new Loaded;  // outlives the process's own destructors
  return *loaded;
}

CUresult loaded(CUmodule* out, const void* image) {
  return entry([&] {
    *out = static_cast<CUmodule>(new_handle());
    auto kernels = kernels_in(image);
    const std::lock_guard lock(known().mutex);
    if (!kernels.empty()) known().modules.emplace(*out, std::move(kernels));
    return CUDA_SUCCESS;
  });
}

}  // namespace

namespace peakbench::emulator::driver {

std::optional<ParameterSizes> parameters_of(CUfunction function) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().functions.find(function);
  return found == known().functions.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace peakbench::emulator::driver

PEAKBENCH_ENTRY CUresult cuModuleLoad(CUmodule* out, const char* path) {
  std::ifstream file(path ? path : "", std::ios::binary);
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  return loaded(out, image.size() > sizeof(std::uint64_t) * 8 ? image.data() : nullptr);
}
PEAKBENCH_ENTRY CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return loaded(out, image);
}
PEAKBENCH_ENTRY CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned,
                                            CUjit_option*, void**) {
  return loaded(out, image);
}
PEAKBENCH_ENTRY CUresult cuModuleUnload(CUmodule module) {
  return entry([&] {
    const std::lock_guard lock(known().mutex);
    known().modules.erase(module);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return entry([&] {
    *out = static_cast<CUfunction>(new_handle());
    const std::lock_guard lock(known().mutex);
    const auto kernels = known().modules.find(module);
    if (kernels == known().modules.end() || !name) return CUDA_SUCCESS;
    const auto kernel = kernels->second.find(name);
    if (kernel != kernels->second.end()) known().functions.emplace(*out, kernel->second);
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
// kernels read. Here it begins with the tensor's address, so that a launch is seen to be given it.
namespace {

CUresult describe(CUtensorMap* map, void* address) {
  return entry([&] {
    map->opaque[0] = reinterpret_cast<cuuint64_t>(address);
    return CUDA_SUCCESS;
  });
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuTensorMapEncodeTiled(CUtensorMap* out, CUtensorMapDataType, cuuint32_t,
                                                void* address, const cuuint64_t*, const cuuint64_t*,
                                                const cuuint32_t*, const cuuint32_t*,
                                                CUtensorMapInterleave, CUtensorMapSwizzle,
                                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  *out = {};
  return describe(out, address);
}
PEAKBENCH_ENTRY CUresult cuTensorMapEncodeIm2col(CUtensorMap* out, CUtensorMapDataType, cuuint32_t,
                                                 void* address, const cuuint64_t*,
                                                 const cuuint64_t*, const int*, const int*,
                                                 cuuint32_t, cuuint32_t, const cuuint32_t*,
                                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  *out = {};
  return describe(out, address);
}
PEAKBENCH_ENTRY CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return describe(map, address);
}
