#include "recording/cuda/allocator_events.h"

#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/version.h>

#include <optional>
#include <utility>

namespace peakbench::recording {
namespace {

using c10::cuda::CUDACachingAllocator::TraceEntry;

// Nothing for snapshots, and in later releases annotations: no memory changes hands.
std::optional<trace::EventKind> kind_of(const TraceEntry& entry) {
  switch (entry.action_) {
    case TraceEntry::ALLOC:
      return trace::EventKind::kAlloc;
    case TraceEntry::FREE_REQUESTED:
      return trace::EventKind::kFreeRequested;
    case TraceEntry::FREE_COMPLETED:
      return trace::EventKind::kFree;
    case TraceEntry::SEGMENT_ALLOC:
      return trace::EventKind::kSegmentAlloc;
    case TraceEntry::SEGMENT_FREE:
      return trace::EventKind::kSegmentFree;
    case TraceEntry::SEGMENT_MAP:
      return trace::EventKind::kSegmentMap;
    case TraceEntry::SEGMENT_UNMAP:
      return trace::EventKind::kSegmentUnmap;
    case TraceEntry::OOM:
      return trace::EventKind::kOutOfMemory;
    default:
      return std::nullopt;
  }
}

// A release that does not say has them all in the default one.
template <class Entry>
std::pair<std::uint64_t, std::uint64_t> pool_of(const Entry& entry) {
  if constexpr (requires { entry.mempool_; })
    return {entry.mempool_.first, entry.mempool_.second};
  else
    return {};
}

}  // namespace

void listen_to_allocator(AllocatorListener listener) {
  c10::cuda::CUDACachingAllocator::attachAllocatorTraceTracker([listener = std::move(listener)](
                                                                   const TraceEntry& entry) {
    const auto kind = kind_of(entry);
    if (!kind) return;
    listener({.kind = *kind,
              .device = static_cast<int>(entry.device_),
              .address = static_cast<std::uint64_t>(entry.addr_),
              .bytes = static_cast<std::int64_t>(entry.size_),
              .stream = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(entry.stream_)),
              .pool = pool_of(entry)});
  });
}

std::uint64_t allocated_bytes(int device) {
  constexpr std::size_t kAll =
      0;  // StatType::AGGREGATE, which releases declare in different places
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  return static_cast<std::uint64_t>(stats.allocated_bytes[kAll].current);
}

int cudnn_settings(int* tf32, int* deterministic, int* benchmark) {
  const auto& context = at::globalContext();
  try {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
    *tf32 = context.allowTF32CuDNN(at::Float32Op::CONV) ? 1 : 0;
#else
    *tf32 = context.allowTF32CuDNN() ? 1 : 0;
#endif
  } catch (const std::exception&) {
    return 0;
  }
  *deterministic = context.deterministicCuDNN() || context.deterministicAlgorithms() ? 1 : 0;
  *benchmark = context.benchmarkCuDNN() ? 1 : 0;
  return 1;
}

}  // namespace peakbench::recording
