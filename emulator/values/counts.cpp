#include "values/counts.h"

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

}  // namespace

void count(const allocator::TraceEntry& entry) {
  const auto stats = count_device(entry.device_);
  if (entry.action_ == allocator::TraceEntry::OOM)
    peakbench_emulator_needed(
        entry.device_,
        static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current) + entry.size_);
}

void count_all() {
  if (!allocator::get() || !allocator::get()->initialized()) return;
  for (int device = 0; device < c10::cuda::device_count(); ++device) {
    try {
      count_device(static_cast<c10::DeviceIndex>(device));
    } catch (const std::exception&) {  // a device that the program never used
      return;
    }
  }
}

}  // namespace peakbench::values
