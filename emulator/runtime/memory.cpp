#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/own_ledger.h"
#include "runtime/errors.h"

// Memory of the device and page-locked memory of the host.

using namespace peakbench::emulator;
using namespace peakbench::emulator::runtime;

namespace {

cudaError_t device_memory(void** out, std::uint64_t bytes) {
  if (!out) return cudaErrorInvalidValue;
  *out = nullptr;
  if (!bytes) return cudaSuccess;
  return error_of(allocate_device(current_device(), bytes, out));
}

cudaError_t pinned_memory(void** out, std::uint64_t bytes) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    *out = nullptr;
    return bytes ? error_of(allocate_pinned(bytes, out)) : cudaSuccess;
  });
}

// CUDA 12's end where CUDA 13's have room for more.
constexpr std::size_t kPointerAttributesBytes = PEAKBENCH_CUDA_MAJOR == 12
                                                    ? offsetof(cudaPointerAttributes, reserved)
                                                    : sizeof(cudaPointerAttributes);

cudaMemoryType type_of(const MemoryPlace& place) {
  if (place.is_on_device()) return cudaMemoryTypeDevice;
  if (place.is_locked()) return cudaMemoryTypeHost;
  return place.kind == MemoryKind::managed ? cudaMemoryTypeManaged : cudaMemoryTypeUnregistered;
}

}  // namespace

PEAKBENCH_ENTRY cudaError_t cudaMalloc(void** out, size_t bytes) {
  return working_entry([&] {
    const auto error = error_of(takes_memory_in_capture());
    return error == cudaSuccess ? device_memory(out, bytes) : error;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMallocPitch(void** out, size_t* pitch, size_t width,
                                            size_t height) {
  return entry([&] {
    if (!pitch) return cudaErrorInvalidValue;
    *pitch = (width + 511) / 512 * 512;
    return device_memory(out, *pitch * height);
  });
}

PEAKBENCH_ENTRY cudaError_t cudaMallocManaged(void** out, size_t bytes, unsigned) {
  return entry([&] {
    if (!out || !bytes) return cudaErrorInvalidValue;
    enter(Fact::unified_memory);
    return error_of(allocate_managed(current_device(), bytes, out));
  });
}

PEAKBENCH_ENTRY cudaError_t cudaFree(void* base) {
  return entry([&] { return base ? error_of(release(base, false)) : cudaSuccess; });
}

PEAKBENCH_ENTRY cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const void* caller = __builtin_return_address(0);
  return entry([&] {
    if (free_bytes) free_memory_is_read("cudaMemGetInfo", caller);
    std::uint64_t free = 0, total = 0;
    memory_info(current_device(), &free, &total);
    if (free_bytes) *free_bytes = free;
    if (total_bytes) *total_bytes = total;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaHostAlloc(void** out, size_t bytes, unsigned) {
  return pinned_memory(out, bytes);
}

PEAKBENCH_ENTRY cudaError_t cudaMallocHost(void** out, size_t bytes) {
  return pinned_memory(out, bytes);
}

PEAKBENCH_ENTRY cudaError_t cudaFreeHost(void* base) {
  return entry([&] { return base ? error_of(release(base, true)) : cudaSuccess; });
}

PEAKBENCH_ENTRY cudaError_t cudaHostRegister(void* base, size_t bytes, unsigned) {
  return entry([&] {
    if (!base || !bytes) return cudaErrorInvalidValue;
    return register_host(base, bytes) == MemoryResult::ok ? cudaSuccess
                                                          : cudaErrorHostMemoryAlreadyRegistered;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaHostUnregister(void* base) {
  return entry([&] {
    return unregister_host(base) == MemoryResult::ok ? cudaSuccess
                                                     : cudaErrorHostMemoryNotRegistered;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaHostGetDevicePointer(void** out, void* host, unsigned) {
  return entry([&] {
    if (!find_place(host).is_locked()) return cudaErrorInvalidValue;
    *out = host;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  return entry([&] {
    if (!find_place(host).is_locked()) return cudaErrorInvalidValue;
    *flags = cudaHostAllocMapped;
    return cudaSuccess;
  });
}

PEAKBENCH_ENTRY cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out,
                                                     const void* address) {
  return entry([&] {
    if (!out) return cudaErrorInvalidValue;
    const MemoryPlace place = find_place(address);
    std::memset(out, 0, kPointerAttributesBytes);
    out->type = type_of(place);
    out->device = place.kind == MemoryKind::unknown ? -2 : std::max(place.device, 0);
    void* at = const_cast<void*>(address);
    if (out->type != cudaMemoryTypeUnregistered) out->devicePointer = at;
    if (out->type != cudaMemoryTypeDevice) out->hostPointer = at;
    return cudaSuccess;
  });
}

// Memory and events that another process of the program made. A handle says where the memory lies
// in its process; who opens it gets addresses without the bytes, which are charged to their owner
// alone: whoever reads there reads what is not known.

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
