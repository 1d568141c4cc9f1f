#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/card.h"
#include "core/entry.h"
#include "core/own_ledger.h"

// NVML: the card as its management sees it. What all processes have taken is used; in the list of
// processes is this one alone.

using namespace peakbench::emulator;

namespace {

constexpr int kInvalidArgument = 2;
constexpr int kNotSupported = 3;
constexpr int kNotFound = 6;
constexpr int kInsufficientSize = 7;
constexpr int kDriverNotLoaded = 9;

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Process {
  unsigned pid;
  unsigned long long used;
};
struct ProcessV2 {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
};
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

// A device's handle is its number plus one.
void* handle_of(int device) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1);
}
int device_of(void* handle) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
}

int initialise() { return machine_state() == MachineState::ready ? kSuccess : kDriverNotLoaded; }

int put(char* out, unsigned size, const char* text) {
  std::snprintf(out, size, "%s", text);
  return kSuccess;
}

int find_device(int device, void** out) {
  if (!out) return kInvalidArgument;
  if (!is_device(device)) return kNotFound;
  *out = handle_of(device);
  return kSuccess;
}

void uuid_text(int device, char* out, unsigned size) {
  unsigned char b[16];
  device_uuid(device, b);
  std::snprintf(out, size,
                "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                b[14], b[15]);
}

template <typename Info>
int running_processes(void* handle, unsigned* count, Info* out) {
  if (!is_device(device_of(handle)) || !count) return kInvalidArgument;
  const unsigned room = *count;
  *count = 1;
  if (!room || !out) return kInsufficientSize;
  *out = {};
  out->pid = static_cast<unsigned>(getpid());
  out->used = ledger().devices[device_of(handle)].used_bytes + card().context_bytes;
  return kSuccess;
}

}  // namespace

PEAKBENCH_ENTRY int nvmlInit() { return initialise(); }
PEAKBENCH_ALSO(nvmlInit_v2, nvmlInit);
PEAKBENCH_ENTRY int nvmlInitWithFlags(unsigned) { return initialise(); }
PEAKBENCH_ENTRY int nvmlShutdown() { return kSuccess; }

PEAKBENCH_ENTRY const char* nvmlErrorString(int error) {
  switch (error) {
    case kSuccess:
      return "Success";
    case kNotSupported:
      return "Not Supported";
    case kNotFound:
      return "Not Found";
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    default:
      return "an error of the emulated NVML";
  }
}

PEAKBENCH_ENTRY int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  return put(out, size, kDriverVersion);
}
PEAKBENCH_ENTRY int nvmlSystemGetNVMLVersion(char* out, unsigned size) {
  return put(out, size, "13.580.00");
}
PEAKBENCH_ENTRY int nvmlSystemGetCudaDriverVersion(int* out) {
  return give(out, driver_cuda_version());
}
PEAKBENCH_ALSO(nvmlSystemGetCudaDriverVersion_v2, nvmlSystemGetCudaDriverVersion);

PEAKBENCH_ENTRY int nvmlDeviceGetCount(unsigned* out) {
  return give(out, static_cast<unsigned>(device_count()));
}
PEAKBENCH_ALSO(nvmlDeviceGetCount_v2, nvmlDeviceGetCount);
PEAKBENCH_ENTRY int nvmlDeviceGetHandleByIndex(unsigned index, void** out) {
  return find_device(static_cast<int>(index), out);
}
PEAKBENCH_ALSO(nvmlDeviceGetHandleByIndex_v2, nvmlDeviceGetHandleByIndex);

PEAKBENCH_ENTRY int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, void** out) {
  unsigned domain = 0, bus = 0;
  if (!bus_id || std::sscanf(bus_id, "%x:%x", &domain, &bus) != 2) return kInvalidArgument;
  return find_device(static_cast<int>(bus) - 1, out);
}

PEAKBENCH_ENTRY int nvmlDeviceGetHandleByUUID(const char* uuid, void** out) {
  if (!uuid) return kInvalidArgument;
  for (int device = 0; device < device_count(); ++device) {
    char known[64];
    uuid_text(device, known, sizeof known);
    if (std::strcmp(known, uuid) == 0) return find_device(device, out);
  }
  return kNotFound;
}

PEAKBENCH_ENTRY int nvmlDeviceGetIndex(void* handle, unsigned* out) {
  return give(out, static_cast<unsigned>(device_of(handle)));
}
PEAKBENCH_ENTRY int nvmlDeviceGetName(void*, char* out, unsigned size) {
  return put(out, size, card().name.c_str());
}

PEAKBENCH_ENTRY int nvmlDeviceGetUUID(void* handle, char* out, unsigned size) {
  if (!is_device(device_of(handle))) return kInvalidArgument;
  uuid_text(device_of(handle), out, size);
  return kSuccess;
}

PEAKBENCH_ENTRY int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  if (!major || !minor) return kInvalidArgument;
  *major = card().major;
  *minor = card().minor;
  return kSuccess;
}

PEAKBENCH_ENTRY int nvmlDeviceGetMemoryInfo(void* handle, Memory* out) {
  if (!is_device(device_of(handle))) return kInvalidArgument;
  free_memory_is_read("nvmlDeviceGetMemoryInfo", __builtin_return_address(0));
  std::uint64_t free = 0, total = 0;
  memory_info(device_of(handle), &free, &total);
  *out = {total, free, total - free};
  return kSuccess;
}

PEAKBENCH_ENTRY int nvmlDeviceGetMemoryInfo_v2(void* handle, MemoryV2* out) {
  if (!is_device(device_of(handle))) return kInvalidArgument;
  free_memory_is_read("nvmlDeviceGetMemoryInfo_v2", __builtin_return_address(0));
  std::uint64_t free = 0, total = 0;
  memory_info(device_of(handle), &free, &total);
  *out = {out->version, total, 0, free, total - free};
  return kSuccess;
}

PEAKBENCH_ENTRY int nvmlDeviceGetPciInfo_v3(void* handle, PciInfo* out) {
  if (!is_device(device_of(handle))) return kInvalidArgument;
  std::memset(out, 0, sizeof *out);
  out->bus = static_cast<std::uint8_t>(device_of(handle) + 1);
  std::snprintf(out->bus_id_legacy, sizeof out->bus_id_legacy, "0000:%02X:00.0", out->bus);
  std::snprintf(out->bus_id, sizeof out->bus_id, "00000000:%02X:00.0", out->bus);
  return kSuccess;
}

// Nobody but this process is on its card. PyTorch's text for out of memory says what it has in use.
PEAKBENCH_ENTRY int nvmlDeviceGetComputeRunningProcesses(void* handle, unsigned* count,
                                                         Process* out) {
  return running_processes(handle, count, out);
}
PEAKBENCH_ENTRY int nvmlDeviceGetComputeRunningProcesses_v2(void* handle, unsigned* count,
                                                            ProcessV2* out) {
  return running_processes(handle, count, out);
}
PEAKBENCH_ALSO(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDeviceGetComputeRunningProcesses_v2);

PEAKBENCH_ENTRY int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, void*) {
  return kNotSupported;
}
PEAKBENCH_ENTRY int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, void*) {
  return kNotSupported;
}
PEAKBENCH_ENTRY int nvmlDeviceGetGpuFabricInfoV(void*, void*) { return kNotSupported; }

// NVML: temperature, clocks, power and utilisation, which programs log. The clocks are the card's;
// the rest is that of a card on which nothing runs (card.h).

namespace {

struct Utilization {
  unsigned gpu, memory;
};

// nvmlClockType_t.
enum Clock : unsigned { kGraphicsClock, kSmClock, kMemoryClock, kVideoClock };

template <typename Value>
int sensor(void* handle, Value* out, Value value) {
  if (!is_device(device_of(handle)) || !out) return kInvalidArgument;
  enter(Fact::idle_sensors);
  *out = value;
  return kSuccess;
}

int clock_of(void* handle, unsigned which, unsigned* out) {
  if (which > kVideoClock) return kInvalidArgument;
  const int khz = which == kMemoryClock ? card().memory_clock_khz : card().clock_khz;
  return sensor(handle, out, static_cast<unsigned>(khz) / 1000);
}

int two_of(void* handle, unsigned* first, unsigned value, unsigned* second, unsigned other) {
  const int status = sensor(handle, first, value);
  return status == kSuccess ? sensor(handle, second, other) : status;
}

}  // namespace

PEAKBENCH_ENTRY int nvmlDeviceGetTemperature(void* handle, unsigned, unsigned* out) {
  return sensor(handle, out, kIdleCelsius);
}
PEAKBENCH_ENTRY int nvmlDeviceGetTemperatureThreshold(void* handle, unsigned, unsigned* out) {
  return sensor(handle, out, kHottestCelsius);
}

PEAKBENCH_ENTRY int nvmlDeviceGetClockInfo(void* handle, unsigned which, unsigned* out) {
  return clock_of(handle, which, out);
}
PEAKBENCH_ALSO(nvmlDeviceGetMaxClockInfo, nvmlDeviceGetClockInfo);
PEAKBENCH_ALSO(nvmlDeviceGetApplicationsClock, nvmlDeviceGetClockInfo);
PEAKBENCH_ENTRY int nvmlDeviceGetClock(void* handle, unsigned which, unsigned, unsigned* out) {
  return clock_of(handle, which, out);
}

PEAKBENCH_ENTRY int nvmlDeviceGetPowerUsage(void* handle, unsigned* out) {
  return sensor(handle, out, kIdleMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetEnforcedPowerLimit(void* handle, unsigned* out) {
  return sensor(handle, out, kMostMilliwatts);
}
PEAKBENCH_ALSO(nvmlDeviceGetPowerManagementLimit, nvmlDeviceGetEnforcedPowerLimit);
PEAKBENCH_ALSO(nvmlDeviceGetPowerManagementDefaultLimit, nvmlDeviceGetEnforcedPowerLimit);
PEAKBENCH_ENTRY int nvmlDeviceGetPowerManagementLimitConstraints(void* handle, unsigned* least,
                                                                 unsigned* most) {
  return two_of(handle, least, kMostMilliwatts, most, kMostMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetPowerState(void* handle, unsigned* out) {
  return sensor(handle, out, 0u);
}
PEAKBENCH_ALSO(nvmlDeviceGetPerformanceState, nvmlDeviceGetPowerState);
// In millijoules since the driver was loaded, of which nobody knows when.
PEAKBENCH_ENTRY int nvmlDeviceGetTotalEnergyConsumption(void* handle, unsigned long long* out) {
  return sensor(handle, out, 0ull);
}

PEAKBENCH_ENTRY int nvmlDeviceGetUtilizationRates(void* handle, Utilization* out) {
  return sensor(handle, out, Utilization{kIdlePercent, kIdlePercent});
}
PEAKBENCH_ENTRY int nvmlDeviceGetEncoderUtilization(void* handle, unsigned* out, unsigned* period) {
  return two_of(handle, out, kIdlePercent, period, 1);
}
PEAKBENCH_ALSO(nvmlDeviceGetDecoderUtilization, nvmlDeviceGetEncoderUtilization);

// As cards for servers answer: the fans are the server's.
PEAKBENCH_ENTRY int nvmlDeviceGetFanSpeed(void*, unsigned*) { return kNotSupported; }
PEAKBENCH_ENTRY int nvmlDeviceGetFanSpeed_v2(void*, unsigned, unsigned*) { return kNotSupported; }
