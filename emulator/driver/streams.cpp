// The driver's streams and events: the runtime's, under other names.
#include "core/exchange.h"
#include "core/timing.h"
#include "driver/entry_points.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::driver;

namespace {

CUresult known(bool is) { return is ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

}  // namespace

PEAKBENCH_ENTRY CUresult cuStreamCreate(CUstream* out, unsigned flags) {
  return answer(out, [&] { return reinterpret_cast<CUstream>(create_stream(0, flags)); });
}
PEAKBENCH_ENTRY CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int priority) {
  return answer(out, [&] { return reinterpret_cast<CUstream>(create_stream(priority, flags)); });
}
PEAKBENCH_ENTRY CUresult cuStreamDestroy(CUstream stream) {
  return entry([&] { return known(destroy_stream(number(stream))); });
}
PEAKBENCH_ENTRY CUresult cuStreamSynchronize(CUstream stream) {
  return entry([&] {
    if (meets_device_assert(current_device())) return CUDA_ERROR_ASSERT;
    if (const auto error = error_of(asks_stream_in_capture(number(stream)))) return error;
    wait_for_stream(number(stream));
    return known(stream_exists(number(stream)));
  });
}
PEAKBENCH_ENTRY CUresult cuStreamQuery(CUstream stream) {
  const void* caller = __builtin_return_address(0);
  return entry([&] {
    if (const auto error = error_of(asks_stream_in_capture(number(stream)))) return error;
    if (!answer_stream_query(number(stream), "cuStreamQuery", caller)) return CUDA_ERROR_NOT_READY;
    return known(stream_exists(number(stream)));
  });
}
PEAKBENCH_ENTRY CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* out) {
  return entry([&] {
    if (!out) return CUDA_ERROR_INVALID_VALUE;
    const auto capture = capture_info(number(stream));
    *out = !capture.id           ? CU_STREAM_CAPTURE_STATUS_NONE
           : capture.invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return known(stream_exists(number(stream)));
  });
}
PEAKBENCH_ENTRY CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  return entry([&] { return known(wait_event(number(stream), number(event))); });
}
PEAKBENCH_ENTRY CUresult cuEventCreate(CUevent* out, unsigned) {
  return answer(out, [&] { return reinterpret_cast<CUevent>(create_event()); });
}
PEAKBENCH_ENTRY CUresult cuEventDestroy(CUevent event) {
  return entry([&] { return known(destroy_event(number(event))); });
}
PEAKBENCH_ENTRY CUresult cuEventRecord(CUevent event, CUstream stream) {
  return entry([&] { return known(record_event(number(event), number(stream))); });
}
PEAKBENCH_ENTRY CUresult cuEventQuery(CUevent event) {
  const void* caller = __builtin_return_address(0);
  return entry([&] {
    if (const auto error = error_of(asks_event_in_capture(number(event)))) return error;
    if (!answer_event_query(number(event), "cuEventQuery", caller)) return CUDA_ERROR_NOT_READY;
    return known(event_exists(number(event)));
  });
}
PEAKBENCH_ENTRY CUresult cuEventSynchronize(CUevent event) {
  return entry([&] {
    if (meets_device_assert(current_device())) return CUDA_ERROR_ASSERT;
    if (const auto error = error_of(asks_event_in_capture(number(event)))) return error;
    wait_for_event(number(event));
    return known(event_exists(number(event)));
  });
}
// The same between any two events; see answer_elapsed_time.
PEAKBENCH_ENTRY CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  const void* caller = __builtin_return_address(0);
  return entry([&] {
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    *milliseconds = answer_elapsed_time("cuEventElapsedTime", caller);
    return known(event_exists(number(start)) && event_exists(number(end)));
  });
}
// Its name of CUDA 12.
#undef cuEventElapsedTime
PEAKBENCH_ALSO(cuEventElapsedTime, cuEventElapsedTime_v2);
