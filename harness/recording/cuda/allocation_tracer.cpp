#include "recording/cuda/allocation_tracer.h"

#include <ATen/core/CachingHostAllocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/version.h>

#include <algorithm>
#include <bit>
#include <mutex>
#include <unordered_map>

namespace peakbench::recording {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

constexpr std::int64_t kSmallestBlock = 512;  // c10/cuda/CUDACachingAllocator: kMinBlockSize

std::int64_t rounded_up(std::int64_t bytes) {
  return std::max(kSmallestBlock, (bytes + kSmallestBlock - 1) / kSmallestBlock * kSmallestBlock);
}

}  // namespace

// Takes the torch profiler's place on every thread that inherits this thread's state, the autograd
// threads included.
class AllocationTracer::Report final : public c10::MemoryReportingInfoBase {
 public:
  explicit Report(AllocationTracer& tracer) : tracer_(tracer) {}
  void reportMemoryUsage(void* pointer, std::int64_t size, std::size_t, std::size_t,
                         c10::Device device) override {
    if (device.is_cuda()) tracer_.on_report(pointer, size);
  }
  bool memoryProfilingEnabled() const override { return true; }

 private:
  AllocationTracer& tracer_;
};

AllocationTracer::AllocationTracer(AllocationSink& sink, int device_count) : sink_(sink) {
  for (int i = 0; i < device_count; ++i)
    spaces_.push_back(sink.add_space("cuda:" + std::to_string(i)));
  listen_to_allocator([this](const AllocatorEvent& event) { on_event(event); });
  allocator::attachOutOfMemoryObserver(
      [this](std::int64_t device, std::size_t requested, std::size_t limit, std::size_t free) {
        on_out_of_memory(static_cast<int>(device), static_cast<std::int64_t>(requested),
                         static_cast<std::int64_t>(limit), static_cast<std::int64_t>(free));
      });
  guard_ = std::make_unique<c10::DebugInfoGuard>(c10::DebugInfoKind::PROFILER_STATE,
                                                 std::make_shared<Report>(*this));
}

void AllocationTracer::on_event(const AllocatorEvent& event) {
  const std::lock_guard lock(mutex_);
  if (pending_.waiting) {
    ++unreported_;
    emit_pending(rounded_up(pending_.requested_bytes));
  }
  const int space = spaces_.at(static_cast<std::size_t>(event.device));
  switch (event.kind) {
    case trace::EventKind::kAlloc:
      pending_ = {true, space, event.address, event.bytes, event.stream};
      return;
    case trace::EventKind::kFreeRequested:
      return sink_.free_requested(space, event.address);
    case trace::EventKind::kFree:
      return sink_.freed(space, event.address);
    default:
      return sink_.event(event.kind, space, event.address, event.bytes, event.stream);
  }
}

void AllocationTracer::on_report(void* pointer, std::int64_t block_bytes) {
  const std::lock_guard lock(mutex_);
  if (block_bytes <= 0 || !pending_.waiting) return;  // frees are told by the tracker
  if (pending_.address == reinterpret_cast<std::uint64_t>(pointer)) emit_pending(block_bytes);
}

void AllocationTracer::emit_pending(std::int64_t block_bytes) {
  sink_.allocated(pending_.space, pending_.address, pending_.requested_bytes, block_bytes,
                  pending_.stream);
  pending_.waiting = false;
}

// Called by the allocator after it let go of its lock and before anything unwinds: the facts are
// still the failure's.
void AllocationTracer::on_out_of_memory(int device, std::int64_t requested, std::int64_t limit,
                                        std::int64_t free) {
  const auto stats = allocator::getDeviceStats(static_cast<c10::DeviceIndex>(device));
  std::int64_t largest_free = 0;
  for (const auto& segment : allocator::snapshot().segments) {
    if (segment.device != device) continue;
    for (const auto& block : segment.blocks) {
      if (!block.allocated && !block.active)
        largest_free = std::max(largest_free, static_cast<std::int64_t>(block.size));
    }
  }
  const std::lock_guard lock(mutex_);
  failure_.requested_bytes = requested;
  failure_.limit_bytes = limit;
  failure_.allocated_bytes = stats.allocated_bytes[0].current;
  failure_.reserved_bytes = stats.reserved_bytes[0].current;
  failure_.largest_free_block_bytes = largest_free;
  failure_.retries = stats.num_alloc_retries;
}

namespace {

// In the place of PyTorch's own, which still does all the work; contexts stay its own, because a
// stream's use is recorded by them.
class TracedHostAllocator final : public at::HostAllocator {
 public:
  TracedHostAllocator(AllocationSink& sink, at::HostAllocator& inner)
      : sink_(sink), inner_(inner) {}

  at::DataPtr allocate(std::size_t bytes) override {
    at::DataPtr data = inner_.allocate(bytes);
    if (data.get() == nullptr) return data;
    note_allocation(data.get_context(), data.get(), bytes);
    const auto device = data.device();
    void* address = data.get();
    release_inner = data.get_deleter();
    return {address, data.release_context(), &release, device};
  }

  at::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    inner_.copy_data(to, from, bytes);
  }
  bool record_event(void* data, void* context, c10::Stream stream) override {
    return inner_.record_event(data, context, stream);
  }
  void empty_cache() override { inner_.empty_cache(); }
  at::HostStats get_stats() override { return inner_.get_stats(); }
  void reset_accumulated_stats() override { inner_.reset_accumulated_stats(); }
  void reset_peak_stats() override { inner_.reset_peak_stats(); }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11  // pools of pinned memory came with 2.11
  void begin_allocate_to_pool(c10::MempoolId_t pool,
                              std::function<bool(c10::Stream)> filter) override {
    inner_.begin_allocate_to_pool(pool, std::move(filter));
  }
  void end_allocate_to_pool(c10::MempoolId_t pool) override { inner_.end_allocate_to_pool(pool); }
  void release_pool(c10::MempoolId_t pool) override { inner_.release_pool(pool); }
#endif

  // A deleter is told its context alone: there is one of these a process, and LibTorch's deleter is
  // one function.
  static TracedHostAllocator* instance;
  static at::DeleterFnPtr release_inner;

 private:
  static void release(void* context) {
    instance->note_free(context);
    release_inner(context);
  }

  void note_allocation(void* context, void* data, std::size_t bytes) {
    const auto address = reinterpret_cast<std::uint64_t>(data);
    const std::lock_guard lock(mutex_);
    if (space_ < 0) space_ = sink_.add_space("pinned");
    addresses_[context] = address;
    sink_.allocated(space_, address, static_cast<std::int64_t>(bytes),
                    static_cast<std::int64_t>(std::bit_ceil(bytes)), 0);
  }

  void note_free(void* context) {
    const std::lock_guard lock(mutex_);
    const auto found = addresses_.find(context);
    if (found == addresses_.end()) return;
    sink_.freed(space_, found->second);
    addresses_.erase(found);
  }

  AllocationSink& sink_;
  at::HostAllocator& inner_;
  std::mutex mutex_;
  int space_ = -1;
  std::unordered_map<void*, std::uint64_t> addresses_;
};

TracedHostAllocator* TracedHostAllocator::instance = nullptr;
at::DeleterFnPtr TracedHostAllocator::release_inner = nullptr;

}  // namespace

void trace_pinned_memory(AllocationSink& sink) {
  constexpr std::uint8_t kPriority = 255;
  TracedHostAllocator::instance =
      new TracedHostAllocator(sink, *at::getHostAllocator(at::kCUDA));  // outlives every tensor
  at::setHostAllocator(at::kCUDA, TracedHostAllocator::instance, kPriority);
}

}  // namespace peakbench::recording
