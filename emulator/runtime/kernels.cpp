#include "core/kernels.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/cubin.h"
#include "runtime/errors.h"

// The fat binaries of the program's libraries, read when somebody asks about one of their kernels:
// those of a file of LibTorch take about 10 ms, and few are asked about.

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

// As nvcc writes it into .nvFatBinSegment (fatbinary_section.h of the toolkit).
struct FatBinaryWrapper {
  int magic, version;
  const void* image;
  const void* more;
};

struct Module {
  const void* image;                 // null once its library is unloaded
  const Kernels* kernels = nullptr;  // once somebody asked
};

struct Registered {
  const void* host_function;
  Module* module;
  const char* name;
};

// Libraries register tens of thousands of kernels before main: they are sorted at the first
// question.
struct Registry {
  std::mutex mutex;
  std::deque<Module> modules;
  std::vector<Registered> functions;
  bool sorted = true;
  std::unordered_map<const void*, KernelSettings> settings;
};

Registry& registry() {
  static auto* const registry = new Registry;
  return *registry;
}

bool before(const Registered& one, const Registered& other) {
  return one.host_function < other.host_function;
}

// The one that was registered last, of a library that is still there.
const Registered* find(Registry& all, const void* host_function) {
  if (!all.sorted) std::ranges::stable_sort(all.functions, before);
  all.sorted = true;
  // In clang 14's tools libstdc++'s subrange is no range.
  const auto [first, last] = std::equal_range(all.functions.begin(), all.functions.end(),
                                              Registered{host_function, nullptr, nullptr}, before);
  for (auto one = last; one != first;)
    if ((--one)->module->image) return &*one;
  return nullptr;
}

struct ProgramKernel {
  std::optional<KernelFacts> facts;  // nullopt where there is no machine code for the card
  KernelSettings settings;
};

ProgramKernel kernel_of(const void* host_function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  ProgramKernel kernel;
  if (const auto set = all.settings.find(host_function); set != all.settings.end())
    kernel.settings = set->second;
  const Registered* const found = find(all, host_function);
  if (!found) return kernel;
  Module& module = *found->module;
  if (!module.kernels) module.kernels = read_kernels(module.image);
  const auto facts = module.kernels->find(found->name);
  if (facts != module.kernels->end() && facts->second.registers) kernel.facts = facts->second;
  return kernel;
}

void set(const void* host_function, const KernelSettings& settings) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.settings[host_function] = settings;
}

}  // namespace

// The prototypes of these are nvcc's own; no header of the runtime has them.
PEAKBENCH_ENTRY void** __cudaRegisterFatBinary(const FatBinaryWrapper* wrapper) {
  const std::lock_guard lock(registry().mutex);
  return reinterpret_cast<void**>(&registry().modules.emplace_back(Module{wrapper->image}));
}
PEAKBENCH_ENTRY void __cudaRegisterFatBinaryEnd(void**) {}
PEAKBENCH_ENTRY void __cudaUnregisterFatBinary(void** handle) {
  auto& module = *reinterpret_cast<Module*>(handle);
  const std::lock_guard lock(registry().mutex);
  if (module.kernels) forget_kernels(module.kernels);
  module = {};
}
PEAKBENCH_ENTRY void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                            const char* name, int, uint3*, uint3*, dim3*, dim3*,
                                            int*) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.functions.push_back({host_function, reinterpret_cast<Module*>(handle), name});
  all.sorted = false;
}
PEAKBENCH_ENTRY char __cudaInitModule(void**) { return 1; }

PEAKBENCH_ENTRY cudaError_t __cudaGetKernel(cudaKernel_t* out, const void* function) {
  if (!out) return finish(cudaErrorInvalidValue);
  *out = static_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

// What a program asks and sets of its kernels.

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

// Kernel launches: checked as the runtime checks them, counted, not run.

namespace {

struct Configuration {
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
};

// `kernel<<<...>>>` pushes, the kernel's host side pops.
thread_local std::vector<Configuration> pushed;

bool fits(const dim3& grid, const dim3& block, size_t shared_bytes) {
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z) return false;
  if (grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) return false;
  if (1ull * block.x * block.y * block.z > kMaxThreadsPerBlock || block.z > 64) return false;
  return shared_bytes <= card().shared_memory_per_block_optin_bytes;
}

cudaError_t launch(const dim3& grid, const dim3& block, size_t shared_bytes, cudaStream_t stream,
                   const void* caller) {
  return working_entry([&] {
    if (!fits(grid, block, shared_bytes)) return cudaErrorInvalidConfiguration;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    count_launch(number(stream), kPeakbenchBuiltInKernel, caller);
    return cudaSuccess;
  });
}

}  // namespace

// The prototypes of the next four are nvcc's own; no header of the runtime has them.
PEAKBENCH_ENTRY unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                                     cudaStream_t stream) {
  pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}

PEAKBENCH_ENTRY cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block,
                                                       size_t* shared_bytes, void* stream) {
  if (pushed.empty()) return finish(cudaErrorIllegalState);
  const Configuration last = pushed.back();
  pushed.pop_back();
  *grid = last.grid;
  *block = last.block;
  *shared_bytes = last.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = last.stream;
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t __cudaLaunchKernel(cudaKernel_t, dim3 grid, dim3 block, void**,
                                               size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream, __builtin_return_address(0));
}

PEAKBENCH_ENTRY cudaError_t cudaLaunchKernel(const void*, dim3 grid, dim3 block, void**,
                                             size_t shared_bytes, cudaStream_t stream) {
  return launch(grid, block, shared_bytes, stream, __builtin_return_address(0));
}

PEAKBENCH_ALSO(cudaLaunchCooperativeKernel, cudaLaunchKernel);

PEAKBENCH_ENTRY cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void*,
                                                void**) {
  if (!config) return finish(cudaErrorInvalidValue);
  return launch(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream,
                __builtin_return_address(0));
}

// A function on the host that a stream calls when it gets there: it is there.
PEAKBENCH_ENTRY cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                               void* data) {
  return entry([&] {
    if (!function) return cudaErrorInvalidValue;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    if (!capture_of(number(stream))) function(data);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamAddCallback(cudaStream_t stream,
                                                  cudaStreamCallback_t callback, void* data,
                                                  unsigned) {
  return entry([&] {
    if (!callback) return cudaErrorInvalidValue;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    callback(stream, cudaSuccess, data);
    return cudaSuccess;
  });
}
