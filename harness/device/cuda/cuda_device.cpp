// A CUDA card as cases see it. Real and emulated cards are one device: the same LibTorch code runs
// on both.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>

#include <algorithm>

#include "device/cuda/card_state.h"
#include "device/cuda/cuda_graph.h"
#include "device/cuda/cuda_settings.h"
#include "device/cuda/emulation.h"
#include "device/cuda/event.h"
#include "device/cuda/workspaces.h"
#include "device/module.h"
#include "errors/errors.h"
#include "record/cuda/allocation_tracer.h"
#include "record/cuda/pinned_tracer.h"

namespace peakbench::device {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(const DeviceRequest& request)
      : name_(request.device.id), index_(static_cast<c10::DeviceIndex>(request.device.index)) {
    apply_cuda_settings(request.options, request.allocator);
    const int count = c10::cuda::device_count();
    if (count == 0)
      throw ConfigError("device '" + name_ + "': no CUDA card can be used here. " + why_none());
    if (index_ >= count) {
      throw ConfigError("device '" + name_ + "': this machine has " + std::to_string(count) +
                        " card(s), cuda:0 to cuda:" + std::to_string(count - 1));
    }
    at::globalContext().lazyInitDevice(at::kCUDA);
    check_allocator(request.allocator);
    c10::cuda::set_device(index_);
    offer_cuda_graphs();
  }

  c10::Device torch_device() const override { return {c10::kCUDA, index_}; }
  bool emulated() const override { return runs_on_stand_ins(); }
  std::string why_not_timed() const override {
    return emulated() ? "an emulated card has no time: its kernels do nothing" : "";
  }
  std::string clock() const override { return "cuda_event"; }

  void trace(record::AllocationSink& sink) override {
    tell_emulation_of_allocations();
    tracer_ = std::make_unique<record::AllocationTracer>(sink, c10::cuda::device_count());
    record::trace_pinned_memory(sink);
  }

  void synchronise() override { c10::cuda::device_synchronize(); }

  std::int64_t time_ns(const std::function<void()>& step) override {
    Event start(Event::For::kTime), end(Event::For::kTime);
    const auto stream = c10::cuda::getCurrentCUDAStream(index_);
    synchronise();
    start.record(stream);
    step();
    end.record(stream);
    end.synchronise();
    constexpr double kNanosecondsPerMillisecond = 1e6;
    return static_cast<std::int64_t>(start.milliseconds_to(end) * kNanosecondsPerMillisecond);
  }

  void check(std::int64_t traced_allocated_bytes, const std::string& where) override {
    const std::int64_t counted = allocator::getDeviceStats(index_).allocated_bytes[0].current;
    if (counted == traced_allocated_bytes) return;
    throw TraceError(where + ": the trace has " + std::to_string(traced_allocated_bytes) +
                     " bytes allocated, PyTorch's allocator counts " + std::to_string(counted) +
                     " (" + std::to_string(tracer_ ? tracer_->unreported() : 0) +
                     " allocations came from threads that do not report)");
  }

  void reset_peaks() override { allocator::resetPeakStats(index_); }

  void check_peaks(const result::Memory& traced) override {
    const auto stats = allocator::getDeviceStats(index_);
    expect("allocated", traced.peak_allocated_bytes, stats.allocated_bytes[0].peak);
    expect("requested", traced.peak_requested_bytes, stats.requested_bytes[0].peak);
    expect("reserved", traced.peak_reserved_bytes.value_or(0), stats.reserved_bytes[0].peak);
  }

  void visit_workspaces(const VisitWorkspace& visit) const override {
    visit_kept_workspaces(visit);
  }

  void listen_to_workspaces(const VisitWorkspace& visit) override {
    listen_to_emulated_libraries(visit);
  }

  record::OutOfMemory last_out_of_memory() const override {
    return tracer_ ? tracer_->last_out_of_memory() : record::OutOfMemory{};
  }

  nlohmann::json settings() const override { return cuda_settings_in_force(); }

  nlohmann::json state() const override {
    return emulated() ? nlohmann::json::object() : card_state(index_);
  }

  std::optional<std::int64_t> context_bytes() const override {
    if (emulated()) return std::nullopt;  // what a context takes is the driver's secret
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    const auto reserved = allocator::getDeviceStats(index_).reserved_bytes[0].current;
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(total - free) - reserved);
  }

  nlohmann::json environment() const override {
    cudaDeviceProp properties{};
    cudaGetDeviceProperties(&properties, index_);
    int driver = 0;
    cudaDriverGetVersion(&driver);
    return {{"card", properties.name},
            {"compute_capability",
             std::to_string(properties.major) + "." + std::to_string(properties.minor)},
            {"streaming_multiprocessors", properties.multiProcessorCount},
            {"card_memory_bytes", properties.totalGlobalMem},
            {"driver_cuda_version", driver},
            {"emulated", emulated()}};
  }

  std::optional<result::Emulation> emulation() const override {
    auto report = emulation_report();
    if (report) report->card = name_;
    return report;
  }

  std::string host_refusal() const override { return emulation_host_refusal(); }

 private:
  static void expect(const char* what, std::int64_t traced, std::int64_t counted) {
    if (traced == counted) return;
    throw TraceError(std::string("peak ") + what + ": the trace has " + std::to_string(traced) +
                     " bytes, PyTorch's allocator counts " + std::to_string(counted));
  }

  // 13000 is CUDA 13.0.
  static std::string release(int version) {
    return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
  }

  static std::string why_none() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    std::string why = std::string("The CUDA runtime says: ") + cudaGetErrorString(error) + ". ";
    if (error == cudaErrorInsufficientDriver) {
      int driver = 0, runtime = 0;
      cudaDriverGetVersion(&driver);
      cudaRuntimeGetVersion(&runtime);
      why += "The driver is for CUDA " + release(driver) + ", this LibTorch for CUDA " +
             release(runtime) + ": update the driver, or use a LibTorch for the older CUDA. ";
    }
    return why +
           "Use --device emulated:CARD for memory without a card; `peakbench doctor` looks "
           "closer.";
  }

  std::string name_;
  c10::DeviceIndex index_;  // an emulated case's card is the first
  std::unique_ptr<record::AllocationTracer> tracer_;
};

std::unique_ptr<Device> make_cuda_device(const DeviceRequest& request) {
  return std::make_unique<CudaDevice>(request);
}

}  // namespace
}  // namespace peakbench::device

PEAKBENCH_DEVICE_MODULE("cuda", peakbench::device::make_cuda_device)
