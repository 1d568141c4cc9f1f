// cuDNN's graph interface, as far as convolution and attention go: any graph finds one engine. What
// its plan needs as a workspace is known for attention on some cards (attention.h) and counts as
// none otherwise: every run of such a plan is counted as one whose workspace is not modelled.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/entry.h"
#include "core/symbols.h"
#include "cudnn/attention.h"
#include "cudnn/attributes.h"
#include "cudnn/descriptors.h"
#include "cudnn/status.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::cudnn;

namespace {

int none(std::int64_t* count) { return give(count, std::int64_t{0}); }

template <typename Value>
int one(std::int64_t requested, std::int64_t* count, void* out, Value value) {
  if (count) *count = 1;
  if (out && requested > 0) *static_cast<Value*>(out) = value;
  return kSuccess;
}

// Of the graph that a plan or a configuration is of; it is read once.
std::optional<std::int64_t> workspace_of(void* descriptor) {
  static auto& mutex = *new std::mutex;
  static auto& known =
      *new std::unordered_map<std::shared_ptr<const Descriptor>, std::optional<std::int64_t>>;
  const auto graph = graph_of(descriptor);
  if (!graph) return std::nullopt;
  std::lock_guard lock(mutex);
  const auto found = known.find(graph);
  if (found != known.end()) return found->second;
  return known[graph] = attention_workspace(*graph);
}

// The caller brings the descriptors that would be filled in: there is one.
int fill_in(std::int64_t* count) { return give(count, std::int64_t{1}); }

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
      if (out && requested > 0 && lies_in(__builtin_return_address(0), "libtorch_cuda.so"))
        give_graph(descriptor, *static_cast<void**>(out));
      return fill_in(count);
    case kConfigEngine:
    case kPlanConfig:
      return fill_in(count);
    case kGraphEngineCount:
      return one<std::int64_t>(requested, count, out, 1);
    case kEngineIndex:
      return one<std::int64_t>(requested, count, out, 0);
    case kConfigWorkspaceBytes:
    case kPlanWorkspaceBytes:
      return one<std::int64_t>(requested, count, out, workspace_of(descriptor).value_or(0));
    // Unanswered, cudnn-frontend takes a plan's shared memory for too much.
    case kConfigSharedMemoryBytes:
      return one<std::int32_t>(requested, count, out, 0);
    case kConfigKnobChoices:
    case kEngineKnobs:
    case kEngineNumericalNotes:
    case kEngineBehaviorNotes:
      return none(count);
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
  if (!workspace_of(plan)) missing_workspace(Workspace::cudnn_engine);
  count_device_work();
  return kSuccess;
}
