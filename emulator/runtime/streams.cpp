#include <functional>

#include "core/exchange.h"
#include "core/timing.h"
#include "runtime/errors.h"

// Streams and events: everything issued is done, but for what other ranks take part in (NCCL).
// Events have no times. What an answer says of time, the ledger has (timing.h).

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

cudaError_t make_stream(cudaStream_t* out, int priority, unsigned flags) {
  return answer(out,
                [&] { return reinterpret_cast<cudaStream_t>(create_stream(priority, flags)); });
}

cudaError_t make_event(cudaEvent_t* out) {
  return answer(out, [&] { return reinterpret_cast<cudaEvent_t>(create_event()); });
}

cudaError_t known(bool is) { return is ? cudaSuccess : cudaErrorInvalidResourceHandle; }

cudaError_t with_stream(cudaStream_t stream) {
  return entry([&] { return known(stream_exists(number(stream))); });
}

template <typename Value, typename Find>
cudaError_t answer_of(cudaStream_t stream, Value* out, Find find) {
  if (!out) return finish(cudaErrorInvalidValue);
  *out = find(number(stream));
  return with_stream(stream);
}

cudaError_t with_event(cudaEvent_t event) {
  return entry([&] { return known(event_exists(number(event))); });
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaStreamCreate(cudaStream_t* out) { return make_stream(out, 0, 0); }
PEAKBENCH_ENTRY cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  return make_stream(out, 0, flags);
}
PEAKBENCH_ENTRY cudaError_t cudaStreamCreateWithPriority(cudaStream_t* out, unsigned flags,
                                                         int priority) {
  return make_stream(out, priority, flags);
}
PEAKBENCH_ENTRY cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return entry([&] { return known(destroy_stream(number(stream))); });
}
// cudaErrorNotReady is no error that is remembered.
PEAKBENCH_ENTRY cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const void* caller = __builtin_return_address(0);
  const auto error = waiting_entry([&] {
    if (const auto error = with_stream(stream); error != cudaSuccess) return error;
    return error_of(asks_stream_in_capture(number(stream)));
  });
  if (error != cudaSuccess) return error;
  return answer_stream_query(number(stream), "cudaStreamQuery", caller) ? cudaSuccess
                                                                        : cudaErrorNotReady;
}
// A stream that is being captured runs nothing, so nothing can be waited for: a program that reads
// a value there fails on a card.
PEAKBENCH_ENTRY cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return waiting_entry([&] {
    if (!stream_exists(number(stream))) return cudaErrorInvalidResourceHandle;
    const auto error = error_of(asks_stream_in_capture(number(stream)));
    if (error == cudaSuccess) wait_for_stream(number(stream));
    return error;
  });
}
PEAKBENCH_ENTRY cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* out) {
  return answer_of(stream, out, stream_priority);
}
PEAKBENCH_ENTRY cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* out) {
  return answer_of(stream, out, stream_flags);
}
PEAKBENCH_ENTRY cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* out) {
  return answer_of(stream, out, stream_device);
}
PEAKBENCH_ENTRY cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* out) {
  return answer_of(stream, out, std::identity());
}
PEAKBENCH_ENTRY cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  return entry([&] { return known(wait_event(number(stream), number(event))); });
}

PEAKBENCH_ENTRY cudaError_t cudaEventCreate(cudaEvent_t* out) { return make_event(out); }
PEAKBENCH_ENTRY cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned) {
  return make_event(out);
}
PEAKBENCH_ENTRY cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return entry([&] { return known(destroy_event(number(event))); });
}
PEAKBENCH_ENTRY cudaError_t cudaEventQuery(cudaEvent_t event) {
  const void* caller = __builtin_return_address(0);
  const auto error = waiting_entry([&] {
    if (const auto error = with_event(event); error != cudaSuccess) return error;
    return error_of(asks_event_in_capture(number(event)));
  });
  if (error != cudaSuccess) return error;
  return answer_event_query(number(event), "cudaEventQuery", caller) ? cudaSuccess
                                                                     : cudaErrorNotReady;
}
PEAKBENCH_ENTRY cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return waiting_entry([&] {
    const auto error = error_of(asks_event_in_capture(number(event)));
    if (error != cudaSuccess) return error;
    wait_for_event(number(event));
    return with_event(event);
  });
}
PEAKBENCH_ENTRY cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return entry([&] { return known(record_event(number(event), number(stream))); });
}
PEAKBENCH_ENTRY cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                                     unsigned) {
  return cudaEventRecord(event, stream);
}

// The same between any two events; see answer_elapsed_time.
PEAKBENCH_ENTRY cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start,
                                                 cudaEvent_t end) {
  const void* caller = __builtin_return_address(0);
  return entry([&] {
    if (!event_exists(number(start)) || !event_exists(number(end)))
      return cudaErrorInvalidResourceHandle;
    *milliseconds = answer_elapsed_time("cudaEventElapsedTime", caller);
    return cudaSuccess;
  });
}
#if PEAKBENCH_CUDA_MAJOR == 12
PEAKBENCH_ALSO(cudaEventElapsedTime_v2, cudaEventElapsedTime);
#endif

// CUDA graphs: a capture counts the launches it would record, which is all that a graph is here.

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
    const auto ended = end_capture(number(stream));
    *out = reinterpret_cast<cudaGraph_t>(ended.graph);
    if (ended.invalidated) return cudaErrorStreamCaptureInvalidated;
    return ended.graph ? cudaSuccess : cudaErrorIllegalState;
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
