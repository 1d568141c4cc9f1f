// Streams, events and captured graphs.
#pragma once

#include <cstdint>

#include "core/api.h"

namespace peakbench::emulator {

// Handles are numbers in an address range of their own, in the order of creation. 0, 1 and 2 are
// CUDA's default streams.
PEAKBENCH_EMULATOR_API std::uint64_t create_stream(int priority, unsigned flags);
PEAKBENCH_EMULATOR_API bool destroy_stream(std::uint64_t stream);
PEAKBENCH_EMULATOR_API bool stream_exists(std::uint64_t stream);
PEAKBENCH_EMULATOR_API int stream_priority(std::uint64_t stream);
PEAKBENCH_EMULATOR_API unsigned stream_flags(std::uint64_t stream);
PEAKBENCH_EMULATOR_API int stream_device(std::uint64_t stream);
PEAKBENCH_EMULATOR_API std::uint64_t create_event();
PEAKBENCH_EMULATOR_API bool destroy_event(std::uint64_t event);
PEAKBENCH_EMULATOR_API bool event_exists(std::uint64_t event);
PEAKBENCH_EMULATOR_API bool record_event(std::uint64_t event, std::uint64_t stream);
PEAKBENCH_EMULATOR_API bool wait_event(std::uint64_t stream, std::uint64_t event);

// The host has seen that all work of the stream is done: a query returned it, or a copy has ended.
PEAKBENCH_EMULATOR_API void told_of_stream(std::uint64_t stream);

// cudaStreamCaptureMode, by its values.
enum class CaptureMode { global, thread, relaxed };
// The calling thread's own, which is global at first; returns what it was.
PEAKBENCH_EMULATOR_API CaptureMode exchange_capture_mode(CaptureMode mode);

// Graph capture: launches are counted instead of run, which is all that a graph is here.
PEAKBENCH_EMULATOR_API bool begin_capture(std::uint64_t stream, CaptureMode mode);
struct CaptureInfo {
  std::uint64_t id = 0;  // 0 when the stream is not capturing
  std::uint64_t graph = 0;
  bool invalidated = false;  // a call has disturbed it
};
PEAKBENCH_EMULATOR_API CaptureInfo capture_info(std::uint64_t stream);
PEAKBENCH_EMULATOR_API std::uint64_t capture_of(std::uint64_t stream);
// As it ended: without a graph when it was disturbed.
PEAKBENCH_EMULATOR_API CaptureInfo end_capture(std::uint64_t stream);

// Errors of calls that a running capture does not allow, by the number that they have in the
// runtime and in the driver. They invalidate the capture, so it makes no graph.
enum class CaptureError { none = 0, unsupported = 900, captured_event = 907 };
PEAKBENCH_EMULATOR_API CaptureError takes_memory_in_capture();
// Waits for the current device, the stream or the event, or asks how far it is.
PEAKBENCH_EMULATOR_API CaptureError asks_device_in_capture();
PEAKBENCH_EMULATOR_API CaptureError asks_stream_in_capture(std::uint64_t stream);
PEAKBENCH_EMULATOR_API CaptureError asks_event_in_capture(std::uint64_t event);
PEAKBENCH_EMULATOR_API std::uint64_t graph_nodes(std::uint64_t graph);

// A fresh opaque handle in the same range, for everything else that only needs an identity.
PEAKBENCH_EMULATOR_API void* new_handle();

}  // namespace peakbench::emulator
