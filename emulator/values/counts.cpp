#include "values/counts.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <unistd.h>

#include <cstdlib>

#include "core/values_hook.h"
#include "trace/trace.h"

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

void answer_questions() {
  peakbench_emulator_ask_pytorch(recording::allocated_bytes, recording::cudnn_settings);
}

void count(const recording::AllocatorEvent& event) {
  const auto stats = count_device(static_cast<c10::DeviceIndex>(event.device));
  if (event.kind == trace::EventKind::kOutOfMemory)
    peakbench_emulator_needed(event.device,
                              static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current) +
                                  static_cast<std::uint64_t>(event.bytes));
}

void start_counting() {
  answer_questions();
  try {  // called with none of the allocator's locks
    allocator::attachOutOfMemoryObserver(
        [](std::int64_t, std::size_t, std::size_t, std::size_t) { peakbench_emulator_ran_out(); });
  } catch (const c10::Error&) {  // backend:cudaMallocAsync has no such observers
  }
  static const pid_t counted = getpid();
  // Before the allocator itself goes. A fork has no CUDA, and maybe a lock that nobody gives back.
  std::atexit([] {
    if (getpid() == counted) count_all();
  });
}

}  // namespace peakbench::values
