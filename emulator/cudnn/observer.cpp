// Preloaded into a program on a real card: writes down which workspace cuDNN takes for each
// convolution (`peakbench doctor --workspaces`). The calls go on to cuDNN.
//
// $PEAKBENCH_WORKSPACES_TO is a folder. Each process writes PID.json there, anew whenever it has
// seen something new: {"workspaces": ..., "left_out": {REASON: CALLS}}, the former as in a card's
// file.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/convolutions.h"
#include "cudnn/convolution.h"
#include "cudnn/graph.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::cudnn;

namespace {

// A function of the library that would have been called without this one.
template <typename Function>
Function* next(const char* name) {
  auto* found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  if (found) return found;
  std::fprintf(stderr, "peakbench: cuDNN has no %s\n", name);
  std::abort();
}
#define NEXT(name) next<decltype(name)>(#name)

// How PyTorch chooses convolutions. Its functions are called by their names: this library serves
// every release.
class Settings {
 public:
  Settings() {
    void* library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return;
    const auto find = [&](const char* name) { return dlsym(library, name); };
    context_ = reinterpret_cast<void* (*)()>(find("_ZN2at13globalContextEv"));
    benchmark_ = asking(find("_ZNK2at7Context14benchmarkCuDNNEv"));
    deterministic_ = asking(find("_ZNK2at7Context18deterministicCuDNNEv"));
    algorithms_ = asking(find("_ZNK2at7Context23deterministicAlgorithmsEv"));
    allow_tf32_ = asking(find("_ZNK2at7Context14allowTF32CuDNNEv"));
    precision_ = reinterpret_cast<int (*)(const void*, int, int)>(
        find("_ZNK2at7Context16float32PrecisionENS_14Float32BackendENS_9Float32OpE"));
  }

  bool known() const {
    return context_ && benchmark_ && deterministic_ && algorithms_ && (precision_ || allow_tf32_);
  }
  bool benchmark() const { return benchmark_(context_()); }
  bool deterministic() const { return deterministic_(context_()) || algorithms_(context_()); }
  bool tf32() const {
    constexpr int kCuda = 1, kConvolution = 1, kTf32 = 2;  // of ATen/Context.h since PyTorch 2.9
    if (precision_) return precision_(context_(), kCuda, kConvolution) == kTf32;
    return allow_tf32_(context_());
  }

 private:
  using Ask = bool (*)(const void* context);
  static Ask asking(void* function) { return reinterpret_cast<Ask>(function); }

  void* (*context_)() = nullptr;
  Ask benchmark_ = nullptr, deterministic_ = nullptr, algorithms_ = nullptr, allow_tf32_ = nullptr;
  int (*precision_)(const void* context, int backend, int operation) = nullptr;
};

class Seen {
 public:
  // The lock is for what was seen: cuDNN and PyTorch are asked without it.
  void add(const Convolution& convolution, ConvolutionPass pass, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    const std::pair key(convolution, pass);
    if (ambiguous_.contains(key)) return;
    auto& known = bytes_[convolution][static_cast<std::size_t>(pass)];
    if (known == bytes) return;
    if (known) {
      known.reset();
      ambiguous_.insert(key);
      return leave_out_locked("the same convolution took two sizes");
    }
    known = bytes;
    write();
  }
  void leave_out(const char* reason) {
    const std::lock_guard lock(mutex_);
    leave_out_locked(reason);
  }

 private:
  void leave_out_locked(const char* reason) {
    const auto calls = ++left_out_[reason];
    if ((calls & (calls - 1)) == 0) write();  // the first, and now and then
  }
  void write() const {
    const char* folder = std::getenv("PEAKBENCH_WORKSPACES_TO");
    if (!folder) return;
    const auto path = std::string(folder) + "/" + std::to_string(getpid()) + ".json";
    static auto* const version = next<std::size_t()>("cudnnGetVersion");
    const MeasuredConvolutions measured{static_cast<int>(version()), "", bytes_};
    std::ofstream file(path + ".part");
    file << nlohmann::ordered_json{{"workspaces", to_json({measured})}, {"left_out", left_out_}}
                .dump();
    file.close();
    if (file) std::rename((path + ".part").c_str(), path.c_str());
  }

  std::mutex mutex_;
  std::map<Convolution, ConvolutionBytes> bytes_;
  std::set<std::pair<Convolution, ConvolutionPass>> ambiguous_;
  std::map<std::string, std::uint64_t> left_out_;
};

Seen& seen() {
  static auto* const seen = new Seen;
  return *seen;
}

bool is_pytorchs(const void* caller) {
  Dl_info found{};
  return dladdr(caller, &found) != 0 && found.dli_fname &&
         std::string_view(found.dli_fname).ends_with("libtorch_cuda.so");
}

}  // namespace

#define ENTRY extern "C" __attribute__((visibility("default"))) int

ENTRY cudnnBackendCreateDescriptor(int type, void** out) {
  static auto* const go_on = NEXT(cudnnBackendCreateDescriptor);
  const int status = go_on(type, out);
  if (status == 0) create(*out, type);
  return status;
}

ENTRY cudnnBackendDestroyDescriptor(void* descriptor) {
  static auto* const go_on = NEXT(cudnnBackendDestroyDescriptor);
  destroy(descriptor);
  return go_on(descriptor);
}

ENTRY cudnnBackendSetAttribute(void* descriptor, int attribute, int type, std::int64_t count,
                               const void* elements) {
  static auto* const go_on = NEXT(cudnnBackendSetAttribute);
  const int status = go_on(descriptor, attribute, type, count, elements);
  if (status == 0) set(descriptor, attribute, type, count, elements);
  return status;
}

ENTRY cudnnBackendGetAttribute(void* descriptor, int attribute, int type, std::int64_t requested,
                               std::int64_t* count, void* elements) {
  static auto* const go_on = NEXT(cudnnBackendGetAttribute);
  const int status = go_on(descriptor, attribute, type, requested, count, elements);
  // Another program's graphs may look the same and be computed in other types.
  if (status == 0 && attribute == kHeuristicsResults && elements &&
      is_pytorchs(__builtin_return_address(0)))
    for (std::int64_t i = 0; i < requested && (!count || i < *count); ++i)
      give_graph(descriptor, static_cast<void**>(elements)[i]);
  return status;
}

ENTRY cudnnBackendExecute(void* handle, void* plan, void* pack) {
  static auto* const go_on = NEXT(cudnnBackendExecute);
  const int status = go_on(handle, plan, pack);
  if (status != 0) return status;
  const auto graph = graph_of(plan);
  const auto call = graph ? convolution_of(*graph) : std::nullopt;
  static const auto& settings = *new Settings;
  std::int64_t bytes = -1, count = 0;
  if (!graph) {
    seen().leave_out("a plan that PyTorch did not have from cuDNN's heuristics");
  } else if (!call) {
    seen().leave_out(
        "another operation, type or layout than those of convolutions in 16 and 32 bits");
  } else if (!settings.known()) {
    seen().leave_out("PyTorch does not say how it chooses");
  } else if (settings.benchmark()) {
    seen().leave_out("chosen by timing (torch.backends.cudnn.benchmark)");
  } else if (chooses_otherwise()) {
    seen().leave_out(
        "chosen in another way (NVIDIA_TF32_OVERRIDE, TORCH_CUDNN_USE_HEURISTIC_MODE_B)");
  } else if (settings.deterministic()) {
    seen().leave_out("chosen among deterministic algorithms");
  } else if (cudnnBackendGetAttribute(plan, kPlanWorkspaceBytes, kTypeInt64, 1, &count, &bytes) !=
                 0 ||
             bytes < 0) {
    seen().leave_out("a plan that does not say how large its workspace is");
  } else {
    Convolution convolution = call->convolution;
    convolution.tf32 = convolution.dtype == "float32" && settings.tf32();
    seen().add(convolution, call->pass, static_cast<std::uint64_t>(bytes));
  }
  return status;
}
