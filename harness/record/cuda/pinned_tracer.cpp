#include "record/cuda/pinned_tracer.h"

#include <ATen/core/CachingHostAllocator.h>
#include <torch/version.h>

#include <bit>
#include <mutex>
#include <unordered_map>

namespace peakbench::record {
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

}  // namespace peakbench::record
