// Memory and events that another process of the program made. A handle says where the memory lies
// in its process; who opens it gets addresses without the bytes, which are charged to their owner
// alone: whoever reads there reads what is not known.
#include <unistd.h>

#include <cstring>

#include "runtime/errors.h"

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

constexpr std::uint64_t kMagic = 0x4350494b42454150;

struct Handle {
  std::uint64_t magic;
  std::int64_t process;
  std::uint64_t bytes;  // 0 of an event
};
static_assert(sizeof(Handle) <= sizeof(cudaIpcMemHandle_t));
static_assert(sizeof(Handle) <= sizeof(cudaIpcEventHandle_t));

template <typename Vendors>
void write(Vendors* out, std::uint64_t bytes) {
  const Handle handle{kMagic, getpid(), bytes};
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &handle, sizeof handle);
}

// An error where it is no handle of an emulated process, or of this very one.
template <typename Vendors>
cudaError_t read(const Vendors& given, Handle* out) {
  std::memcpy(out, &given, sizeof *out);
  if (out->magic != kMagic) return cudaErrorInvalidValue;
  return out->process == getpid() ? cudaErrorDeviceUninitialized : cudaSuccess;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* out, void* base) {
  return entry([&] {
    const MemoryPlace place = find_place(base);
    if (!out || place.kind != MemoryKind::device) return cudaErrorInvalidValue;
    enter(Fact::shared_memory);
    write(out, place.bytes);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaIpcOpenMemHandle(void** out, cudaIpcMemHandle_t given, unsigned) {
  return entry([&] {
    Handle handle;
    if (const auto error = read(given, &handle); error != cudaSuccess) return error;
    if (!out || !handle.bytes) return cudaErrorInvalidValue;
    enter(Fact::memory_of_another);
    return error_of(open_memory_of_another(current_device(), handle.bytes, out));
  });
}

PEAKBENCH_ENTRY cudaError_t cudaIpcCloseMemHandle(void* base) {
  return entry([&] { return error_of(release(base, false)); });
}

PEAKBENCH_ENTRY cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* out, cudaEvent_t event) {
  return entry([&] {
    if (!out || !event_exists(number(event))) return cudaErrorInvalidResourceHandle;
    write(out, 0);
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* out, cudaIpcEventHandle_t given) {
  return entry([&] {
    Handle handle;
    if (const auto error = read(given, &handle); error != cudaSuccess) return error;
    *out = reinterpret_cast<cudaEvent_t>(create_event());
    return cudaSuccess;
  });
}
