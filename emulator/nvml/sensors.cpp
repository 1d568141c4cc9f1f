// NVML: temperature, clocks, power and utilisation, which programs log. The clocks are the card's;
// the rest is that of a card on which nothing runs (idle_card.h).
#include <cstdint>

#include "core/entry.h"
#include "core/idle_card.h"

using namespace peakbench::emulator;

namespace {

constexpr int kBadArgument = 2;
constexpr int kUnsupported = 3;

struct Utilization {
  unsigned gpu, memory;
};

// nvmlClockType_t.
enum Clock : unsigned { kGraphicsClock, kSmClock, kMemoryClock, kVideoClock };

template <typename Value>
int sensor(void* handle, Value* out, Value value) {
  const auto device = static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
  if (device < 0 || device >= device_count() || !out) return kBadArgument;
  enter(Fact::idle_sensors);
  *out = value;
  return kSuccess;
}

int clock_of(void* handle, unsigned which, unsigned* out) {
  if (which > kVideoClock) return kBadArgument;
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
PEAKBENCH_ENTRY int nvmlDeviceGetMaxClockInfo(void* handle, unsigned which, unsigned* out) {
  return clock_of(handle, which, out);
}
PEAKBENCH_ENTRY int nvmlDeviceGetApplicationsClock(void* handle, unsigned which, unsigned* out) {
  return clock_of(handle, which, out);
}
PEAKBENCH_ENTRY int nvmlDeviceGetClock(void* handle, unsigned which, unsigned, unsigned* out) {
  return clock_of(handle, which, out);
}

PEAKBENCH_ENTRY int nvmlDeviceGetPowerUsage(void* handle, unsigned* out) {
  return sensor(handle, out, kIdleMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetEnforcedPowerLimit(void* handle, unsigned* out) {
  return sensor(handle, out, kMostMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetPowerManagementLimit(void* handle, unsigned* out) {
  return sensor(handle, out, kMostMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetPowerManagementDefaultLimit(void* handle, unsigned* out) {
  return sensor(handle, out, kMostMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetPowerManagementLimitConstraints(void* handle, unsigned* least,
                                                                 unsigned* most) {
  return two_of(handle, least, kMostMilliwatts, most, kMostMilliwatts);
}
PEAKBENCH_ENTRY int nvmlDeviceGetPowerState(void* handle, unsigned* out) {
  return sensor(handle, out, 0u);
}
PEAKBENCH_ENTRY int nvmlDeviceGetPerformanceState(void* handle, unsigned* out) {
  return sensor(handle, out, 0u);
}
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
PEAKBENCH_ENTRY int nvmlDeviceGetDecoderUtilization(void* handle, unsigned* out, unsigned* period) {
  return two_of(handle, out, kIdlePercent, period, 1);
}

// As cards for servers answer: the fans are the server's.
PEAKBENCH_ENTRY int nvmlDeviceGetFanSpeed(void*, unsigned*) { return kUnsupported; }
PEAKBENCH_ENTRY int nvmlDeviceGetFanSpeed_v2(void*, unsigned, unsigned*) { return kUnsupported; }
