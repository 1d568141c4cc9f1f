#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "build_stamp.h"
#include "recording/allocation_sink.h"
#include "records/case.h"
#include "records/device.h"

namespace peakbench::recording {

// A device that a worker's case runs on.
class Device {
 public:
  virtual ~Device() = default;
  virtual c10::Device torch_device() const = 0;

  // What it says of itself, for the record.
  virtual nlohmann::json settings() const = 0;     // what influences the bytes, as it is in force
  virtual nlohmann::json environment() const = 0;  // card, driver, cpu capability
  // What influences the times and changes by itself: a real card's driver, clocks and power state.
  virtual nlohmann::json state() const { return nlohmann::json::object(); }
  // A real card: what it shows as taken beyond what PyTorch reserved, the context (and what other
  // processes hold).
  virtual std::optional<std::int64_t> context_bytes() const { return {}; }
  // Whether this process uses the stub libraries, whatever the case calls its device: kernels do
  // nothing, and all values are undefined.
  virtual bool emulated() const { return false; }
  virtual std::optional<records::Emulation> emulation() const { return {}; }
  // On an emulated card: the message that this machine had no memory or addresses although the card
  // had enough; else empty.
  virtual std::string host_refusal() const { return {}; }

  // How long a step takes on it.
  virtual std::string clock() const = 0;  // steady_clock | cuda_event
  // Why steps on this device are not timed; empty when they are.
  virtual std::string why_not_timed() const { return {}; }
  virtual void synchronise() {}
  // Runs `step` and returns how long it took on this device's clock, in nanoseconds, waiting for it
  // to end.
  virtual std::int64_t time_ns(const std::function<void()>& step);

  // Recording of its allocators' events, compared with their own counters.
  //
  // Installs tracing for the rest of the process, before the first tensor is made. LibTorch cannot
  // remove it.
  virtual void trace(AllocationSink& sink) = 0;
  // Called where a phase ends: compares the trace's sums with the allocator's own counters. Throws
  // TraceError.
  virtual void check(std::int64_t traced_allocated_bytes, const std::string& where) {}
  // Before the first step: the allocator's own peaks start anew. After the last: they must be the
  // trace's. Throws TraceError.
  virtual void reset_peaks() {}
  virtual void check_peaks(const records::Memory& traced) {}
  // Calls `visit` for each block that handles of the vendor's libraries hold now, with its address
  // and the library, as PyTorch's own tables have it. Between steps: nothing is computed meanwhile.
  using VisitWorkspace = std::function<void(std::uint64_t address, const std::string& library)>;
  virtual void visit_workspaces(const VisitWorkspace& visit) const {}
  // From now on, calls `visit` for each block passed to such a library, on the calling thread, for
  // the rest of the process. Only emulated cards report them.
  virtual void listen_to_workspaces(const VisitWorkspace& visit) {}
  // The facts of the failure that LibTorch's OutOfMemoryError was thrown for.
  virtual OutOfMemory last_out_of_memory() const = 0;
};

// Factories of devices. The CPU's is part of the worker. Any other is a shared library that the
// worker opens when a case needs it, so that only this library links the kind's dependencies.
//
//   std::unique_ptr<Device> make(const DeviceRequest& request) { ... }
//   PEAKBENCH_DEVICE_MODULE("cuda", make)

// Of `Device` and the records in its functions; compared exactly.
inline constexpr int kDeviceRevision = 5;

struct DeviceRequest {
  records::Device device;
  nlohmann::json options = nlohmann::json::object();  // cudnn, tf32, ...
  std::string allocator;                // settings of the caching allocator; empty: PyTorch's own
  std::int64_t memory_limit_bytes = 0;  // of the CPU's allocator; 0: none
};

struct DeviceModule {
  // First, and read first: the rest is what it says only where these two are ours.
  int revision = kDeviceRevision;
  const char* build = kBuildStamp;
  const char* name = "";  // records::DeviceFacts::module of the kinds that it makes
  // Throws ConfigError where this machine has no such device.
  std::unique_ptr<Device> (*make)(const DeviceRequest& request) = nullptr;
};

}  // namespace peakbench::recording

#define PEAKBENCH_DEVICE_MODULE(name, make)                            \
  extern "C" __attribute__((visibility("default")))                    \
  const peakbench::recording::DeviceModule peakbench_device_module;    \
  const peakbench::recording::DeviceModule peakbench_device_module = { \
      peakbench::recording::kDeviceRevision, peakbench::recording::kBuildStamp, name, make};

namespace peakbench::recording {

// Makes a case's device: the CPU's, which every worker has, or by the module of its kind,
// ../lib/peakbench/libpeakbench_NAME.so relative to the program. Throws ConfigError if the module
// is missing or of another build, or if this machine has no such device. Throws HostError if the
// machine fails to open it. Modules stay open for the life of the process.
std::unique_ptr<Device> make_device(const DeviceRequest& request);

// The module of the device's kind, for `make_device`; throws as that does.
const DeviceModule& open_module(const std::string& path, const records::Device& device);

// For a process that is to be forked for each job: loaded, and not used.

// Opens the module that make_device() would for a device of the kind. What cannot be opened is left
// to who needs it, and says why.
void load_module_of(records::DeviceKind kind);

// Why a fork of this process could not use CUDA; empty: it could.
std::string why_not_forked();

}  // namespace peakbench::recording
