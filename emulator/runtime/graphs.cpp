// CUDA graphs: a capture counts the launches it would record, which is all that a graph is here.
#include "core/exchange.h"
#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

cudaStreamCaptureStatus status_of(const CaptureInfo& capture) {
  if (!capture.id) return cudaStreamCaptureStatusNone;
  return capture.invalidated ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                                   cudaStreamCaptureMode mode) {
  return entry([&] {
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    return begin_capture(number(stream), static_cast<CaptureMode>(mode))
               ? cudaSuccess
               : cudaErrorStreamCaptureUnsupported;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    const auto [graph, invalidated] = end_capture(number(stream));
    *out = reinterpret_cast<cudaGraph_t>(graph);
    if (invalidated) return cudaErrorStreamCaptureInvalidated;
    return graph ? cudaSuccess : cudaErrorIllegalState;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                  cudaStreamCaptureStatus* out) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    *out = status_of(capture_info(number(stream)));
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                                     cudaStreamCaptureStatus* status,
                                                     unsigned long long* id, cudaGraph_t* graph,
                                                     const cudaGraphNode_t** dependencies,
                                                     const cudaGraphEdgeData** edges,
                                                     size_t* dependency_count) {
  return entry([&] {
    if (!status) return cudaErrorInvalidValue;
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    const auto capture = capture_info(number(stream));
    *status = status_of(capture);
    if (id) *id = capture.id;
    if (graph) *graph = reinterpret_cast<cudaGraph_t>(capture.graph);
    if (dependencies) *dependencies = nullptr;
    if (edges) *edges = nullptr;
    if (dependency_count) *dependency_count = 0;
    return cudaSuccess;
  });
}

// PyTorch's watchdog ends with it what it does for a collective whose event it has asked for.
PEAKBENCH_ENTRY cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (!mode) return finish(cudaErrorInvalidValue);
  looked_at_events();
  *mode =
      static_cast<cudaStreamCaptureMode>(exchange_capture_mode(static_cast<CaptureMode>(*mode)));
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                                          unsigned long long) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    *out = reinterpret_cast<cudaGraphExec_t>(new_handle());
    return graph ? cudaSuccess : cudaErrorInvalidValue;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  return entry([&] {
    if (!graph || !stream_exists(number(stream))) return cudaErrorInvalidValue;
    count_graph_launch();
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes,
                                              size_t* count) {
  return entry([&] {
    if (!count) return cudaErrorInvalidValue;
    const auto have = graph_nodes(number(graph));
    if (nodes) {
      for (size_t i = 0; i < *count; ++i)
        nodes[i] = i < have ? reinterpret_cast<cudaGraphNode_t>(new_handle()) : nullptr;
    }
    *count = have;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaGraphDestroy(cudaGraph_t) {
  return entry([] { return cudaSuccess; });
}
PEAKBENCH_ENTRY cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) {
  return entry([] { return cudaSuccess; });
}
