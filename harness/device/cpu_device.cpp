#include "device/cpu_device.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>

#include "record/cpu_allocator.h"

namespace peakbench::device {
namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  c10::Device torch_device() const override { return c10::Device(c10::kCPU); }
  std::string clock() const override { return "steady_clock"; }

  void trace(record::AllocationSink& sink) override {
    last_failure_ = &record::trace_cpu_allocator(sink, limit_bytes_, record::CpuMemory::kDevice);
  }

  record::OutOfMemory last_out_of_memory() const override {
    return last_failure_ != nullptr ? *last_failure_ : record::OutOfMemory{};
  }

  nlohmann::json settings() const override {
    return {{"threads", at::get_num_threads()}, {"memory_limit_bytes", limit_bytes_}};
  }
  nlohmann::json environment() const override {
    return {{"cpu_capability", at::get_cpu_capability()}};
  }

 private:
  std::int64_t limit_bytes_;
  const record::OutOfMemory* last_failure_ = nullptr;
};

std::unique_ptr<Device> make_cpu_device(const DeviceRequest& request) {
  return std::make_unique<CpuDevice>(request.memory_limit_bytes);
}

}  // namespace

const DeviceModule& cpu_module() {
  static const DeviceModule module{.name = "cpu", .make = make_cpu_device};
  return module;
}

}  // namespace peakbench::device
