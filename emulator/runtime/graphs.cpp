// CUDA graphs: a capture counts the launches it would record, which is all that a graph is here.
#include "core/exchange.h"
#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

PEAKBENCH_ENTRY cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  return entry([&] {
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    return begin_capture(number(stream)) ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* out) {
  return entry([&] {
    const auto graph = end_capture(number(stream));
    *out = reinterpret_cast<cudaGraph_t>(graph);
    return graph ? cudaSuccess : cudaErrorIllegalState;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                                  cudaStreamCaptureStatus* out) {
  return entry([&] {
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    *out = capture_of(number(stream)) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
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
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    const auto capture = capture_of(number(stream));
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    if (id) *id = capture;
    if (graph) *graph = reinterpret_cast<cudaGraph_t>(capture_graph(number(stream)));
    if (dependencies) *dependencies = nullptr;
    if (edges) *edges = nullptr;
    if (dependency_count) *dependency_count = 0;
    return cudaSuccess;
  });
}

// PyTorch's watchdog ends with it what it does for a collective whose event it has asked for.
PEAKBENCH_ENTRY cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  looked_at_events();
  thread_local cudaStreamCaptureMode of_thread = cudaStreamCaptureModeGlobal;
  const auto before = of_thread;
  of_thread = *mode;
  *mode = before;
  return cudaSuccess;
}

PEAKBENCH_ENTRY cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* out, cudaGraph_t graph,
                                                          unsigned long long) {
  return entry([&] {
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
