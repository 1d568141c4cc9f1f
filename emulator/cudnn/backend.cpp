// cuDNN's graph interface, as far as convolution and attention go: any graph finds one engine,
// whose plan needs no workspace of its own. The vendor's engines do; every run of a plan is counted
// as one whose workspace is not modelled.
#include <cstdint>
#include <cstdio>

#include "core/entry.h"
#include "cudnn/status.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::cudnn;

namespace {

// cudnnBackendAttributeName_t: what PyTorch and cudnn-frontend read back.
enum Attribute {
  kHeuristicResults = 202,
  kConfigEngine = 300,
  kConfigKnobChoices = 302,
  kConfigWorkspaceBytes = 303,
  kConfigSharedMemoryBytes = 304,
  kPlanWorkspaceBytes = 402,
  kGraphEngineCount = 802,
  kEngineIndex = 1301,
  kEngineKnobs = 1302,
  kEngineNumericalNotes = 1303,
  kEngineBehaviorNotes = 1305,
};

int none(std::int64_t* count) { return give(count, std::int64_t{0}); }

template <typename Value>
int one(std::int64_t requested, std::int64_t* count, void* out, Value value) {
  if (count) *count = 1;
  if (out && requested > 0) *static_cast<Value*>(out) = value;
  return kSuccess;
}

}  // namespace

PEAKBENCH_ENTRY int cudnnBackendCreateDescriptor(int, void** out) { return give_handle(out); }

PEAKBENCH_ENTRY int cudnnBackendGetAttribute(void* descriptor, int attribute, int,
                                             std::int64_t requested, std::int64_t* count,
                                             void* out) {
  if (!descriptor) return kBadParameter;
  switch (attribute) {
    // The caller brings the descriptors that would be filled in: there is one.
    case kHeuristicResults:
    case kConfigEngine:
      return give(count, std::int64_t{1});
    case kGraphEngineCount:
      return one<std::int64_t>(requested, count, out, 1);
    case kEngineIndex:
    case kConfigWorkspaceBytes:
    case kPlanWorkspaceBytes:
      return one<std::int64_t>(requested, count, out, 0);
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
  missing_workspace("cudnn engine workspace");
  count_device_work();
  return kSuccess;
}
