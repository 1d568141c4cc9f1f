// A device that cases run on: what it is called, how its allocations are traced, its limit, whether
// it can be timed.
//
// A real CUDA card and an emulated one are one module, opened at run time; the CPU is built in.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "result/case.h"
#include "trace/trace.h"

namespace peakbench::device {

// Where a device reports what its allocators do. Thread-safe; makes no LibTorch call, because it
// runs under allocator locks. Addresses are unique while alive across all spaces of a process.
class AllocationSink {
 public:
  virtual ~AllocationSink() = default;
  virtual int add_space(const std::string& name) = 0;
  virtual void allocated(int space, std::uint64_t address, std::int64_t requested_bytes,
                         std::int64_t block_bytes, std::int64_t stream) = 0;
  // CUDA: asked to be freed; from here on max_memory_allocated does not count it. `freed` follows,
  // at once or when the streams that use it are done.
  virtual void free_requested(int space, std::uint64_t address) = 0;
  virtual void freed(int space, std::uint64_t address) = 0;
  // Everything else of an allocator's life: segments, maps, failures.
  virtual void event(trace::EventKind kind, int space, std::uint64_t address, std::int64_t bytes,
                     std::int64_t stream) = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual c10::Device torch_device() const = 0;
  virtual bool emulated() const { return false; }
  // Why steps on this device are not timed; empty when they are.
  virtual std::string why_not_timed() const { return {}; }
  virtual std::string clock() const = 0;  // steady_clock | cuda_event
  // Installs tracing for the rest of the process; before the first tensor is made. LibTorch has no
  // way to take it out.
  virtual void trace(AllocationSink& sink) = 0;
  virtual void synchronise() {}
  // Runs `step` and returns how long it took on this device's clock, in nanoseconds, waiting for it
  // to end.
  virtual std::int64_t time_ns(const std::function<void()>& step);
  // Called where a phase ends: compares the trace's sums with the allocator's own counters. Throws
  // TraceError.
  virtual void check(std::int64_t traced_allocated_bytes, const std::string& where) {}
  // Before the first step: the allocator's own peaks start anew. After the last: they must be the
  // trace's. Throws TraceError.
  virtual void reset_peaks() {}
  virtual void check_peaks(const result::Memory& traced) {}
  // The facts of the failure that LibTorch's OutOfMemoryError was thrown for.
  virtual result::OutOfMemory last_out_of_memory() const = 0;
  virtual nlohmann::json settings() const = 0;     // what influences the bytes, as it is in force
  virtual nlohmann::json environment() const = 0;  // card, driver, cpu capability
  // What influences the times and changes by itself: a real card's driver, clocks and power state.
  virtual nlohmann::json state() const { return nlohmann::json::object(); }
  // A real card: what it shows as taken beyond what PyTorch reserved, the context (and what other
  // processes hold).
  virtual std::optional<std::int64_t> context_bytes() const { return {}; }
  virtual std::optional<result::Emulation> emulation() const { return {}; }
  // An emulated card: that this machine had no memory or addresses for what the card had room for.
  // Empty where it had.
  virtual std::string host_refusal() const { return {}; }
};

// What becomes of a tensor of the CPU that does not fit.
enum class CpuMemory {
  kDevice,  // over the budget, LibTorch's OutOfMemoryError: the case's own outcome
  kHost,    // beside a card: HostError, as the card is not what ran out
};

// memory_limit_bytes: the budget of the CPU's allocator, 0 for none (memory jobs only).
std::unique_ptr<Device> make_cpu_device(std::int64_t memory_limit_bytes);

// Traces the CPU's allocator as the next space of the sink: the CPU device's own way, and what
// stands beside a CUDA device. Once a process. Returns where its last failure is found. What the
// system refuses within the budget is a HostError in both.
const result::OutOfMemory& trace_cpu_allocator(AllocationSink& sink,
                                               std::int64_t memory_limit_bytes, CpuMemory memory);

// A CUDA card, real or emulated (the process then runs on the stand-ins), by the module beside the
// program. `name`: as in the case id; `options`: allocator settings, cudnn, tf32, deterministic.
// Throws ConfigError where there is none.
std::unique_ptr<Device> make_cuda_device(const std::string& name, const nlohmann::json& options);

// What the module exports, `extern "C"`, under the name `peakbench_make_cuda_device`.
using MakeCudaDevice = Device* (*)(const std::string& name, const nlohmann::json& options);

}  // namespace peakbench::device
