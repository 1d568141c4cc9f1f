#include "recording/cpu_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "base/errors.h"
#include "base/host_memory.h"

namespace peakbench::recording {
namespace {

std::atomic<int (*)()> is_left_out{nullptr};

// Bytes alive, by address: deleters are told only the address, on any thread.
class TracingCpuAllocator final : public at::Allocator {
 public:
  TracingCpuAllocator(AllocationSink& sink, std::int64_t limit_bytes, CpuMemory memory)
      : sink_(sink), space_(sink.add_space("cpu")), limit_bytes_(limit_bytes), memory_(memory) {}

  at::DataPtr allocate(std::size_t bytes) override {
    if (const auto ask = is_left_out.load(); ask != nullptr && ask() != 0) {
      void* data = c10::alloc_cpu(bytes);
      return {data, data, &release, at::Device(at::kCPU)};
    }
    reserve(static_cast<std::int64_t>(bytes));
    void* data = nullptr;
    try {
      data = c10::alloc_cpu(bytes);
    } catch (...) {
      in_use_ -= static_cast<std::int64_t>(bytes);
      throw HostError(no_memory_text(static_cast<std::int64_t>(bytes)) + taken());
    }
    if (data != nullptr) {
      {
        const std::lock_guard lock(mutex_);
        sizes_[data] = static_cast<std::int64_t>(bytes);
      }
      sink_.allocated(space_, reinterpret_cast<std::uint64_t>(data),
                      static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(bytes), 0);
    }
    return {data, data, &release, at::Device(at::kCPU)};
  }

  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

  const OutOfMemory& last_failure() const { return failure_; }

  // LibTorch takes a plain pointer and a plain function, for ever: there is one of these a process.
  static TracingCpuAllocator* instance;

 private:
  static void release(void* data) {
    if (data == nullptr) return;
    instance->note_free(data);
    c10::free_cpu(data);
  }

  void reserve(std::int64_t bytes) {
    const std::int64_t now = in_use_ += bytes;
    if (limit_bytes_ == 0 || now <= limit_bytes_) return;
    in_use_ -= bytes;
    if (memory_ == CpuMemory::kHost)
      throw HostError(
          "the case's tensors on the CPU need more of this machine's memory than their budget: " +
          std::to_string(bytes) + " bytes were asked for" + taken() +
          ". Free memory, or raise --memory-limit");
    note_failure(bytes);
    throw c10::OutOfMemoryError(
        {__func__, __FILE__, __LINE__},
        "over the memory limit of " + std::to_string(limit_bytes_) + " bytes");
  }

  std::string taken() const {
    return " (with " + std::to_string(in_use_) + " bytes allocated" +
           (limit_bytes_ > 0 ? " of a budget of " + std::to_string(limit_bytes_) : "") + ")";
  }

  void note_failure(std::int64_t bytes) {
    sink_.event(trace::EventKind::kOutOfMemory, space_, 0, bytes, 0);
    const std::lock_guard lock(mutex_);
    failure_.requested_bytes = bytes;
    failure_.allocated_bytes = in_use_;
    failure_.limit_bytes = limit_bytes_;
  }

  // Reported before the memory is given back, so that no other thread can be seen to reuse a live
  // address.
  void note_free(void* data) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(data);
      if (found == sizes_.end()) return;  // it was left out
      in_use_ -= found->second;
      sizes_.erase(found);
    }
    sink_.freed(space_, reinterpret_cast<std::uint64_t>(data));
  }

  AllocationSink& sink_;
  const int space_;
  const std::int64_t limit_bytes_;
  const CpuMemory memory_;
  std::atomic<std::int64_t> in_use_{0};
  mutable std::mutex mutex_;
  std::unordered_map<void*, std::int64_t> sizes_;
  OutOfMemory failure_;
};

TracingCpuAllocator* TracingCpuAllocator::instance = nullptr;

}  // namespace

const OutOfMemory& trace_cpu_allocator(AllocationSink& sink, std::int64_t memory_limit_bytes,
                                       CpuMemory memory) {
  // Outlives every tensor.
  auto* allocator = new TracingCpuAllocator(sink, memory_limit_bytes, memory);
  TracingCpuAllocator::instance = allocator;
  constexpr std::uint8_t kPriority = 255;
  c10::SetCPUAllocator(allocator, kPriority);
  return allocator->last_failure();
}

void leave_out_of_cpu_trace(int (*ask)()) { is_left_out = ask; }

}  // namespace peakbench::recording
