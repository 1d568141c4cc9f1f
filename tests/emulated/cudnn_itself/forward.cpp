// Preloaded before the stand-ins into a program on an emulated card: its calls of cuDNN's graph
// interface go to NVIDIA's own cuDNN (PEAKBENCH_CUDNN, a folder), which chooses engines and knows
// their workspaces without a device, from a device's properties. Nothing is run.
//
// The calling thread has to be the one of the first call: cuDNN lives in a namespace of its own, as
// it would take the stand-ins for the libraries that it needs, and its C library does not know
// threads of the program's.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

namespace {

// cudnn_graph.h
constexpr int kSuccess = 0, kHandle = 0, kChar = 24, kDescriptor = 15;
constexpr int kHeuristicsGraph = 201, kHeuristicsDevice = 204, kEngineGraph = 1300,
              kEngineDevice = 1307, kDeviceJson = 2702, kDeviceDescriptor = 38;

struct Cudnn {
  std::size_t (*version)();
  int (*create)(int type, void** out);
  int (*destroy)(void* descriptor);
  int (*finalize)(void* descriptor);
  int (*set)(void* descriptor, int attribute, int type, std::int64_t count, const void* elements);
  int (*get)(void* descriptor, int attribute, int type, std::int64_t requested, std::int64_t* count,
             void* elements);
  void* device = nullptr;
};

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "cuDNN itself: %s\n", what.c_str());
  std::_Exit(70);
}

// As cuDNN writes the properties of a device that it asked.
std::string properties() {
  cudaDeviceProp p{};
  int clock = 0, memory_clock = 0, driver = 0, opt_in = 0, blocks = 0;
  if (cudaGetDeviceProperties(&p, 0) != cudaSuccess) fail("no emulated card");
  cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0);
  cudaDeviceGetAttribute(&memory_clock, cudaDevAttrMemoryClockRate, 0);
  cudaDeviceGetAttribute(&opt_in, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaDeviceGetAttribute(&blocks, cudaDevAttrMaxBlocksPerMultiprocessor, 0);
  cudaDriverGetVersion(&driver);
  return nlohmann::json{{"cudaDeviceId", 0},
                        {"deviceName", p.name},
                        {"deviceVer", p.major * 100 + p.minor * 10},
                        {"driverVer", driver},
                        {"multiProcessorCount", p.multiProcessorCount},
                        {"maxGridSize", p.maxGridSize},
                        {"maxBlockSize", p.maxThreadsDim},
                        {"regsPerBlock", p.regsPerBlock},
                        {"warpSize", p.warpSize},
                        {"maxSharedMemoryPerBlock", p.sharedMemPerBlock},
                        {"maxSharedMemoryPerBlockOptin", opt_in},
                        {"reservedSharedMemoryPerBlock", p.reservedSharedMemPerBlock},
                        {"maxRegistersPerSM", p.regsPerMultiprocessor},
                        {"maxCtasPerSM", blocks},
                        {"maxThreadsPerBlock", p.maxThreadsPerBlock},
                        {"maxThreadsPerSM", p.maxThreadsPerMultiProcessor},
                        {"pciDeviceId", 0},
                        {"isTccDriver", 0},
                        {"supportCoopLaunch", 1},
                        {"totalGlobalMem", p.totalGlobalMem},
                        {"smClockRateKHz", clock},
                        {"memClockRateKHz", memory_clock},
                        {"l2CacheSize", p.l2CacheSize}}
      .dump();
}

void* open(Lmid_t space, const std::string& path) {
  return dlmopen(space, path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

template <typename Function>
void find(void* library, const char* name, Function*& out) {
  out = reinterpret_cast<Function*>(dlsym(library, name));
  if (!out) fail(std::string("no ") + name);
}

Cudnn load() {
  const char* folder = std::getenv("PEAKBENCH_CUDNN");
  const char* driver = std::getenv("PEAKBENCH_IDLE_DRIVER");
  if (!folder || !driver) fail("PEAKBENCH_CUDNN and PEAKBENCH_IDLE_DRIVER are not set");
  void* first = open(LM_ID_NEWLM, driver);
  Lmid_t space = LM_ID_BASE;
  if (!first || dlinfo(first, RTLD_DI_LMID, &space) != 0) fail(dlerror());
  // By their paths, as another may be found by its name: where PyPI's packages put them, and CUDA.
  const std::string in(folder);
  for (const char* name : {"libcublasLt.so.13", "libnvrtc.so.13"})
    if (!open(space, in + "/" + name) && !open(space, in + "/../../cu13/lib/" + name))
      fail(std::string(name) + " is neither beside cuDNN nor in ../../cu13/lib");
  void* library = open(space, in + "/libcudnn_graph.so.9");
  if (!library) fail(dlerror());
  Cudnn cudnn;
  find(library, "cudnnGetVersion", cudnn.version);
  find(library, "cudnnBackendCreateDescriptor", cudnn.create);
  find(library, "cudnnBackendDestroyDescriptor", cudnn.destroy);
  find(library, "cudnnBackendFinalize", cudnn.finalize);
  find(library, "cudnnBackendSetAttribute", cudnn.set);
  find(library, "cudnnBackendGetAttribute", cudnn.get);
  const std::string json = properties();
  if (cudnn.create(kDeviceDescriptor, &cudnn.device) != kSuccess ||
      cudnn.set(cudnn.device, kDeviceJson, kChar, static_cast<std::int64_t>(json.size()),
                json.data()) != kSuccess ||
      cudnn.finalize(cudnn.device) != kSuccess)
    fail("does not take the card's properties: " + json);
  std::fprintf(stderr, "cuDNN itself: %zu\n", cudnn.version());
  return cudnn;
}

Cudnn& cudnn() {
  static Cudnn cudnn = load();
  return cudnn;
}

}  // namespace

#define ENTRY extern "C" __attribute__((visibility("default"))) int

ENTRY cudnnBackendCreateDescriptor(int type, void** out) { return cudnn().create(type, out); }
ENTRY cudnnBackendDestroyDescriptor(void* descriptor) { return cudnn().destroy(descriptor); }
ENTRY cudnnBackendFinalize(void* descriptor) { return cudnn().finalize(descriptor); }
ENTRY cudnnBackendSetAttribute(void* descriptor, int attribute, int type, std::int64_t count,
                               const void* elements) {
  // Handles are the stand-in's; the device takes their place.
  if (type == kHandle) return kSuccess;
  const int status = cudnn().set(descriptor, attribute, type, count, elements);
  if (status != kSuccess) return status;
  if (attribute == kHeuristicsGraph)
    return cudnn().set(descriptor, kHeuristicsDevice, kDescriptor, 1, &cudnn().device);
  if (attribute == kEngineGraph)
    return cudnn().set(descriptor, kEngineDevice, kDescriptor, 1, &cudnn().device);
  return kSuccess;
}
ENTRY cudnnBackendGetAttribute(void* descriptor, int attribute, int type, std::int64_t requested,
                               std::int64_t* count, void* elements) {
  return cudnn().get(descriptor, attribute, type, requested, count, elements);
}
ENTRY cudnnBackendExecute(void*, void*, void*) { return kSuccess; }
