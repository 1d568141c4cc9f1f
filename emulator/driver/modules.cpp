#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/cubin.h"
#include "core/kernels.h"
#include "driver/entry_points.h"

// Modules compiled at run time: of their kernels, the parameters and what they use are looked at.

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

constexpr std::size_t kHeaderBytes = 64;  // of an ELF file, the largest that is looked at unasked

struct Function {
  std::optional<KernelFacts> facts;  // nullopt where its image could not be read
  KernelSettings settings;
};

struct Loaded {
  std::mutex mutex;
  std::unordered_map<CUmodule, const Kernels*> modules;
  std::unordered_map<CUfunction, Function> functions;
};

Loaded& known() {
  static auto* const loaded = new Loaded;  // outlives the process's own destructors
  return *loaded;
}

CUresult loaded(CUmodule* out, const void* image) {
  return entry([&] {
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    *out = static_cast<CUmodule>(new_handle());
    const Kernels* const kernels = read_kernels(image);
    const std::lock_guard lock(known().mutex);
    known().modules.emplace(*out, kernels);
    return CUDA_SUCCESS;
  });
}

int attribute(CUfunction_attribute which, const Function& function) {
  const KernelFacts facts = function.facts.value_or(KernelFacts{});
  const auto known_or = [&](int value, int typical) {
    if (facts.registers) return value;
    enter(Fact::unknown_kernel);
    return typical;
  };
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return max_threads_per_block(card(), facts);
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return known_or(facts.registers, kTypicalRegisters);
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      return known_or(static_cast<int>(facts.static_shared_bytes), 0);
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      return known_or(static_cast<int>(facts.local_bytes), 0);
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return facts.arch ? facts.arch : card().binary_arch;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return static_cast<int>(max_dynamic_shared_bytes(card(), facts, function.settings));
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      return function.settings.carveout;
    default:
      return 0;
  }
}

// Nullopt for a handle that no module gave.
std::optional<Function> function_of(CUfunction function) {
  const std::lock_guard lock(known().mutex);
  const auto found = known().functions.find(function);
  return found == known().functions.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuModuleLoad(CUmodule* out, const char* path) {
  std::ifstream file(path ? path : "", std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  if (image.size() <= kHeaderBytes) return CUDA_ERROR_INVALID_IMAGE;
  return loaded(out, image.data());
}
PEAKBENCH_ENTRY CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  return loaded(out, image);
}
PEAKBENCH_ENTRY CUresult cuModuleLoadDataEx(CUmodule* out, const void* image, unsigned,
                                            CUjit_option*, void**) {
  return loaded(out, image);
}
PEAKBENCH_ALSO(cuModuleLoadFatBinary, cuModuleLoadData);
PEAKBENCH_ENTRY CUresult cuModuleUnload(CUmodule module) {
  return entry([&] {
    const std::lock_guard lock(known().mutex);
    const auto found = known().modules.find(module);
    if (found == known().modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    forget_kernels(found->second);
    known().modules.erase(found);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuModuleGetFunction(CUfunction* out, CUmodule module, const char* name) {
  return entry([&] {
    if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(known().mutex);
    const auto kernels = known().modules.find(module);
    if (kernels == known().modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    *out = static_cast<CUfunction>(new_handle());
    const auto kernel = kernels->second->find(name);
    Function function;
    if (kernel != kernels->second->end()) function.facts = kernel->second;
    known().functions.emplace(*out, std::move(function));
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuFuncGetAttribute(int* out, CUfunction_attribute which,
                                            CUfunction function) {
  return answer(out, [&] { return attribute(which, function_of(function).value_or(Function{})); });
}

PEAKBENCH_ENTRY CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which,
                                            int value) {
  return entry([&] {
    const std::lock_guard lock(known().mutex);
    const auto found = known().functions.find(function);
    if (found == known().functions.end()) return CUDA_SUCCESS;
    KernelSettings& settings = found->second.settings;
    if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) settings.carveout = value;
    if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (!may_set_dynamic_shared(card(), found->second.facts.value_or(KernelFacts{}), value))
      return CUDA_ERROR_INVALID_VALUE;
    settings.max_dynamic_shared_bytes = value;
    return CUDA_SUCCESS;
  });
}

// A descriptor of a tensor for the copy engine of sm_90 and later: 128 opaque bytes that only
// kernels read. Here it begins with the tensor's address, so that a launch is seen to be given it.
namespace {

CUresult describe(CUtensorMap* map, void* address, bool anew) {
  if (!map) return CUDA_ERROR_INVALID_VALUE;
  if (anew) *map = {};
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
  return describe(out, address, true);
}
PEAKBENCH_ENTRY CUresult cuTensorMapEncodeIm2col(CUtensorMap* out, CUtensorMapDataType, cuuint32_t,
                                                 void* address, const cuuint64_t*,
                                                 const cuuint64_t*, const int*, const int*,
                                                 cuuint32_t, cuuint32_t, const cuuint32_t*,
                                                 CUtensorMapInterleave, CUtensorMapSwizzle,
                                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  return describe(out, address, true);
}
PEAKBENCH_ENTRY CUresult cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return describe(map, address, false);
}

// Kernel launches through the driver: checked as the driver checks them, counted, not run. Triton
// launches with cuLaunchKernelEx; its driver utilities and PyTorch's ask for occupancies.

namespace {

constexpr unsigned kPortableClusterSize = 8, kLargestClusterSize = 16;

// A table of pointers may lie in memory of the host that kernels read.
constexpr std::uint64_t kLargestTable = 64 << 10;

void add_tables(std::vector<std::uint64_t>& words) {
  const auto count = words.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* at = reinterpret_cast<const char*>(words[i]);
    const auto place = find_place(at);
    if (place.kind != MemoryKind::pinned && place.kind != MemoryKind::managed) continue;
    const auto bytes = std::min(place.base + place.bytes - words[i], kLargestTable);
    for (std::uint64_t done = 0; done + sizeof(std::uint64_t) <= bytes; done += sizeof done) {
      std::uint64_t word = 0;
      std::memcpy(&word, at + done, sizeof word);
      if (word) words.push_back(word);
    }
  }
}

// With `arguments` as the driver takes them: an address each.
CUresult launched(CUfunction function, void* const* arguments, CUstream stream,
                  std::uint64_t threads, unsigned shared_bytes, const void* caller) {
  return entry([&] {
    if (is_stopped(current_device())) return CUDA_ERROR_ASSERT;
    if (!threads || threads > kMaxThreadsPerBlock) return CUDA_ERROR_INVALID_VALUE;
    if (shared_bytes > card().shared_memory_per_block_optin_bytes) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_exists(number(stream))) return CUDA_ERROR_INVALID_HANDLE;
    const auto called = arguments ? function_of(function) : std::nullopt;
    if (!called || !called->facts) {
      count_launch(number(stream), kPeakbenchLoadedAtRunTime, caller);
      return CUDA_SUCCESS;
    }
    auto words = words_of(called->facts->parameters, arguments);
    add_tables(words);
    count_launch(number(stream), kPeakbenchLoadedAtRunTime, caller, &words);
    return CUDA_SUCCESS;
  });
}

std::uint64_t threads_of(const CUlaunchConfig& config) {
  return std::uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
}

// Blocks of a cluster, 1 without one.
unsigned cluster_size(const CUlaunchConfig& config) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    if (attribute.id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = attribute.value.clusterDim;
    return size.x * size.y * size.z;
  }
  return 1;
}

int blocks_of(CUfunction function, std::uint64_t threads, std::uint64_t shared_bytes) {
  const auto called = function_of(function).value_or(Function{});
  if (!called.facts || !called.facts->registers) enter(Fact::unknown_kernel);
  return blocks_per_multiprocessor(card(), called.facts.value_or(KernelFacts{}), called.settings,
                                   {static_cast<int>(threads), shared_bytes});
}

}  // namespace

PEAKBENCH_ENTRY CUresult cuLaunchKernel(CUfunction function, unsigned, unsigned, unsigned,
                                        unsigned x, unsigned y, unsigned z, unsigned shared_bytes,
                                        CUstream stream, void** arguments, void**) {
  return launched(function, arguments, stream, std::uint64_t{x} * y * z, shared_bytes,
                  __builtin_return_address(0));
}

PEAKBENCH_ENTRY CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned, unsigned,
                                                   unsigned, unsigned x, unsigned y, unsigned z,
                                                   unsigned shared_bytes, CUstream stream,
                                                   void** arguments) {
  return launched(function, arguments, stream, std::uint64_t{x} * y * z, shared_bytes,
                  __builtin_return_address(0));
}

PEAKBENCH_ENTRY CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function,
                                          void** arguments, void**) {
  if (!config) return CUDA_ERROR_INVALID_VALUE;
  if (cluster_size(*config) > 1 && card().major < 9) return CUDA_ERROR_INVALID_VALUE;
  return launched(function, arguments, config->hStream, threads_of(*config), config->sharedMemBytes,
                  __builtin_return_address(0));
}

// A function of the host that a stream calls when it gets there: it is there.
PEAKBENCH_ENTRY CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return entry([&] {
    if (!function) return CUDA_ERROR_INVALID_VALUE;
    if (!stream_exists(number(stream))) return CUDA_ERROR_INVALID_HANDLE;
    if (!capture_of(number(stream))) function(data);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* out, CUfunction function, int block_size, size_t shared_bytes, unsigned) {
  return entry([&] {
    if (!out || block_size <= 0) return CUDA_ERROR_INVALID_VALUE;
    *out = blocks_of(function, block_size, shared_bytes);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* out, CUfunction function,
                                                                     int block_size,
                                                                     size_t shared_bytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, block_size,
                                                              shared_bytes, 0);
}

// A cluster's blocks run at the same time, each in its multiprocessor. Which multiprocessors make
// up a group that a cluster can span is not known here.
PEAKBENCH_ENTRY CUresult cuOccupancyMaxActiveClusters(int* out, CUfunction function,
                                                      const CUlaunchConfig* config) {
  return entry([&] {
    if (!out || !config || card().major < 9) return CUDA_ERROR_INVALID_VALUE;
    const auto size = cluster_size(*config);
    if (!size || size > kLargestClusterSize) return CUDA_ERROR_INVALID_VALUE;
    const auto blocks = blocks_of(function, threads_of(*config), config->sharedMemBytes);
    *out = blocks * card().multiprocessor_count / static_cast<int>(size);
    return CUDA_SUCCESS;
  });
}

PEAKBENCH_ENTRY CUresult cuOccupancyMaxPotentialClusterSize(int* out, CUfunction,
                                                            const CUlaunchConfig* config) {
  return entry([&] {
    if (!out || !config || card().major < 9) return CUDA_ERROR_INVALID_VALUE;
    *out = kPortableClusterSize;
    return CUDA_SUCCESS;
  });
}
