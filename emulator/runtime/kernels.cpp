// The fat binaries of the program's libraries, read when somebody asks about one of their kernels:
// those of a file of LibTorch take about 10 ms, and few are asked about.
#include "runtime/kernels.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/kernels.h"
#include "runtime/errors.h"

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

}  // namespace

namespace peakbench::emulator::runtime {

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

}  // namespace peakbench::emulator::runtime

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
