#include "values/counts.h"

#include <unistd.h>

#include <cstdlib>

#include "core/values_hook.h"

namespace peakbench::values {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr std::size_t kAll = 0;  // StatType::AGGREGATE, which releases declare in different places

auto count_device(c10::DeviceIndex device) {
  const auto stats = allocator::getDeviceStats(device);
  peakbench_emulator_counted(device, static_cast<std::uint64_t>(stats.allocated_bytes[kAll].peak),
                             static_cast<std::uint64_t>(stats.reserved_bytes[kAll].peak));
  return stats;
}

void count_all() {
  for (int device = 0; device < c10::cuda::device_count(); ++device) {
    try {
      count_device(static_cast<c10::DeviceIndex>(device));
    } catch (const std::exception&) {  // a device that the program never used
      return;
    }
  }
}

}  // namespace

void count(const allocator::TraceEntry& entry) {
  const auto stats = count_device(entry.device_);
  if (entry.action_ == allocator::TraceEntry::OOM)
    peakbench_emulator_needed(
        entry.device_,
        static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current) + entry.size_);
}

void count_at_end() {
  static const pid_t counted = getpid();
  // Before the allocator itself goes. A fork has no CUDA, and maybe a lock that nobody gives back.
  std::atexit([] {
    if (getpid() == counted) count_all();
  });
}

}  // namespace peakbench::values
