#include "cudnn/cudnn.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/entry.h"
#include "core/symbols.h"
#include "cudnn/graph.h"
#include "cudnn/plan_workspace.h"
#include "vendor_versions.h"

// cuDNN outside its graph interface: version, handles, descriptors, batch normalisation's sizes.

using namespace peakbench::emulator;
using namespace peakbench::emulator::cudnn;

namespace {

Handles<void*>& streams() {
  static auto* const streams = new Handles<void*>(kBadParameter);
  return *streams;
}

// cuDNN itself says 0 for CUDNN_BATCHNORM_SPATIAL, whatever the card and the sizes. The persistent
// mode, which PyTorch takes for channels last, has a workspace.
int batch_norm_workspace(int mode, std::size_t* out) {
  constexpr int kSpatial = 1;
  if (mode != kSpatial) missing_workspace(Workspace::cudnn_batch_norm);
  return give(out, std::size_t{0});
}

}  // namespace

// PyTorch chooses attention and engines by it.
std::size_t peakbench::emulator::cudnn::version() {
  constexpr int kOwn = kCudnnMajor * 10000 + kCudnnMinor * 100 + kCudnnPatch;
  return cudnn_version() ? cudnn_version() : kOwn;
}

PEAKBENCH_ENTRY std::size_t cudnnGetVersion() { return version(); }
PEAKBENCH_ENTRY std::size_t cudnnGetCudartVersion() { return cuda_version(); }

PEAKBENCH_ENTRY int cudnnGetProperty(int which, int* out) {
  const int number = static_cast<int>(version());
  switch (which) {
    case 0:
      return give(out, number / 10000);
    case 1:
      return give(out, number / 100 % 100);
    case 2:
      return give(out, number % 100);
    default:
      return kBadParameter;
  }
}

PEAKBENCH_ENTRY const char* cudnnGetErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case 3000:
      return "CUDNN_STATUS_NOT_SUPPORTED (the emulated card does not do this)";
    default:
      return "an error of the emulated cuDNN";
  }
}
PEAKBENCH_ENTRY void cudnnGetLastErrorString(char* out, std::size_t size) {
  if (size) *out = 0;
}

PEAKBENCH_ENTRY int cudnnCreate(void** out) {
  if (machine_state() != MachineState::ready) return kNotInitialized;
  return streams().create(out);
}

PEAKBENCH_ENTRY int cudnnSetStream(void* handle, void* stream) {
  streams().set(handle, stream);
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnGetStream(void* handle, void** stream) {
  void* set = nullptr;
  streams().with(handle, [&](void* known) { set = known; });
  return give(stream, set);
}

PEAKBENCH_ENTRY int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int mode, int,
                                                                             void*, void*, void*,
                                                                             void*, void*,
                                                                             std::size_t* out) {
  return batch_norm_workspace(mode, out);
}
PEAKBENCH_ENTRY int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int mode, int, void*,
                                                                      void*, void*, void*, void*,
                                                                      void*, void*,
                                                                      std::size_t* out) {
  return batch_norm_workspace(mode, out);
}
PEAKBENCH_ENTRY int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int mode, int,
                                                                         void*, void*,
                                                                         std::size_t* out) {
  return batch_norm_workspace(mode, out);
}

// cuDNN's graph interface, as far as convolution and attention go: any graph finds one engine. What
// its plan needs as a workspace is known for attention on some cards (graph.h), measured or
// estimated for convolutions (convolution.h), and counts as none otherwise: every run of such a
// plan is counted as one whose workspace is not modelled.

namespace {

using Standing = PlanWorkspace::Standing;

template <typename Value>
int one(std::int64_t requested, std::int64_t* count, void* out, Value value) {
  if (count) *count = 1;
  if (out && requested > 0) *static_cast<Value*>(out) = value;
  return kSuccess;
}

// Itself, or through the library that notes workspaces for it.
bool is_for_pytorch(const void* caller) {
  return lies_in(caller, "libtorch_cuda.so") || lies_in(caller, "libpeakbench_cudnn_observer.so");
}

// Of a convolution: PyTorch takes the second where there is no memory for the first one's
// workspace. cuDNN has many more; what the second takes is known as little as whether a card would
// take it.
std::int64_t choices_of(void* heuristics) {
  const auto graph = graph_of(heuristics);
  return graph && convolution_of(*graph) ? 2 : 1;
}

// The configurations that the caller brings are filled in; how many there are.
std::int64_t give_choices(void* heuristics, std::int64_t requested, void** configurations) {
  const auto choices = choices_of(heuristics);
  if (!configurations) return choices;
  const auto given = std::min(requested, choices);
  for (std::int64_t i = 0; i < given; ++i) give_graph(heuristics, configurations[i], i > 0);
  return given;
}

// Of the graph that a plan or a configuration is of; it is read once.
PlanWorkspace workspace_of_first(void* descriptor) {
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::unordered_map<std::shared_ptr<const Descriptor>, PlanWorkspace>;
  const auto graph = graph_of(descriptor);
  if (!graph) return {};
  std::lock_guard lock(mutex);
  const auto found = known.find(graph);
  if (found != known.end()) return found->second;
  return known[graph] = plan_workspace(*graph);
}

PlanWorkspace workspace_of(void* descriptor) {
  auto workspace = workspace_of_first(descriptor);
  if (workspace.standing == Standing::unknown || !is_second(descriptor)) return workspace;
  return {Standing::estimated, 0, 0, workspace.most_bytes, ""};
}

void enter_workspace(const PlanWorkspace& workspace) {
  switch (workspace.standing) {
    case Standing::known:
      return;
    case Standing::unknown:
      return missing_workspace(Workspace::cudnn_engine);
    case Standing::measured:
      enter(Fact::measured_workspace, {.what = workspace.source.c_str()});
      break;
    case Standing::measured_elsewhere:
      enter(Fact::workspace_of_another_card, {.what = workspace.source.c_str()});
      break;
    case Standing::estimated:
      break;
  }
  if (workspace.most_bytes > 0)
    convolution_workspace({workspace.bytes, workspace.least_bytes, workspace.most_bytes});
}

}  // namespace

PEAKBENCH_ENTRY int cudnnBackendCreateDescriptor(int type, void** out) {
  if (const int status = give_handle(out); status != kSuccess) return status;
  create(*out, type);
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnBackendDestroyDescriptor(void* descriptor) {
  destroy(descriptor);
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnBackendSetAttribute(void* descriptor, int attribute, int type,
                                             std::int64_t count, const void* elements) {
  if (!descriptor) return kBadParameter;
  set(descriptor, attribute, type, count, elements);
  return kSuccess;
}

PEAKBENCH_ENTRY int cudnnBackendGetAttribute(void* descriptor, int attribute, int,
                                             std::int64_t requested, std::int64_t* count,
                                             void* out) {
  if (!descriptor) return kBadParameter;
  switch (attribute) {
    case kHeuristicsResults:
      // What is known was asked and measured of graphs that PyTorch builds. Another program's may
      // look the same and be computed in other types.
      if (!is_for_pytorch(__builtin_return_address(0))) return give(count, std::int64_t{1});
      return give(count, give_choices(descriptor, requested, static_cast<void**>(out)));
    case kConfigEngine:
    case kPlanConfig:  // the caller brings the descriptors that would be filled in: there is one
      return give(count, std::int64_t{1});
    case kGraphEngineCount:
      return one<std::int64_t>(requested, count, out, 1);
    case kEngineIndex:
      return one<std::int64_t>(requested, count, out, 0);
    case kConfigWorkspaceBytes:
    case kPlanWorkspaceBytes:
      return one(requested, count, out, static_cast<std::int64_t>(workspace_of(descriptor).bytes));
    // Unanswered, cudnn-frontend takes a plan's shared memory for too much.
    case kConfigSharedMemoryBytes:
      return one<std::int32_t>(requested, count, out, 0);
    case kConfigKnobChoices:
    case kEngineKnobs:
    case kEngineNumericalNotes:
    case kEngineBehaviorNotes:
      return give(count, std::int64_t{0});
    default:
      break;
  }
  char name[64];
  std::snprintf(name, sizeof name, "cudnnBackendGetAttribute(%d)", attribute);
  refuse(name);
  return kNotSupported;
}

PEAKBENCH_ENTRY int cudnnBackendExecute(void*, void* plan, void*) {
  if (!plan) return kBadParameter;
  enter_workspace(workspace_of(plan));
  count_device_work();
  return kSuccess;
}
