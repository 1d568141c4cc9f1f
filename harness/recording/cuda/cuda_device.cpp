#include <ATen/Context.h>
#include <c10/core/Allocator.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "base/errors.h"
#include "recording/cuda/allocation_tracer.h"
#include "recording/cuda/cuda_graph.h"
#include "recording/cuda/emulation.h"
#include "recording/device.h"
#include "records/torch_variables.h"
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
#include <c10/core/AllocatorConfig.h>
#else
#include <c10/cuda/CUDAAllocatorConfig.h>
#endif

namespace peakbench::recording {
namespace {

// NVML's interface has no header here: it comes with the toolkit or the driver's own packages.
// These are its documented signatures and numbers (nvml.h, stable since NVML 2).
using Card = void*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureOfGpu = 0;

class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    usable_ = call<>("nvmlInit_v2");
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (usable_) call<>("nvmlShutdown");
    if (library_ != nullptr) ::dlclose(library_);
  }

  // True when there is such a function and it succeeded.
  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    if (library_ == nullptr) return false;
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    return function != nullptr && function(arguments...) == kSuccess;
  }

  std::optional<Card> card(const std::string& bus_id) const {
    Card card = nullptr;
    if (!call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &card)) return std::nullopt;
    return card;
  }

 private:
  void* library_;
  bool usable_ = false;
};

void add_numbers(const Nvml& nvml, Card card, nlohmann::json& state) {
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetClockInfo", card, kClockSm, &value)) state["sm_clock_mhz"] = value;
  if (nvml.call("nvmlDeviceGetClockInfo", card, kClockMemory, &value))
    state["memory_clock_mhz"] = value;
  if (nvml.call("nvmlDeviceGetTemperature", card, kTemperatureOfGpu, &value))
    state["temperature_celsius"] = value;
  constexpr unsigned kMilliwattsPerWatt = 1000;
  if (nvml.call("nvmlDeviceGetEnforcedPowerLimit", card, &value))
    state["power_limit_watts"] = value / kMilliwattsPerWatt;
  int power_state = 0;
  if (nvml.call("nvmlDeviceGetPowerState", card, &power_state))
    state["power_state"] = "P" + std::to_string(power_state);
}

// What a real card does while it is measured, as its driver says: driver_version, sm_clock_mhz,
// memory_clock_mhz, power_state ("P0" is the fastest), power_limit_watts, temperature_celsius of
// CUDA's card `index`; without what the driver does not say. By NVML, which every driver brings.
nlohmann::json card_state(int index) {
  nlohmann::json state = nlohmann::json::object();
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) != cudaSuccess) return state;
  const Nvml nvml;
  char version[96] = {};
  if (nvml.call("nvmlSystemGetDriverVersion", static_cast<char*>(version),
                static_cast<unsigned>(sizeof version)))
    state["driver_version"] = version;
  if (const auto card = nvml.card(bus_id)) add_numbers(nvml, *card, state);
  return state;
}

std::string allocator_settings() {
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 11
  return c10::CachingAllocator::getAllocatorSettings();
#else
  return c10::cuda::CUDACachingAllocator::CUDAAllocatorConfig::last_allocator_settings();
#endif
}

// What influences a CUDA case's bytes and is chosen explicitly: recorded as it is in force, never
// left to chance. Before LibTorch's CUDA half is used: puts the allocator's settings into the
// environment, which is where PyTorch reads them, and sets cuDNN, TF32 and deterministic
// algorithms. `options`: cudnn, tf32, deterministic (booleans). Absent or empty: PyTorch's own.
void apply_cuda_settings(const nlohmann::json& options, const std::string& allocator) {
  records::forget_inherited_settings();
  if (!allocator.empty()) ::setenv(records::kAllocatorVariable, allocator.c_str(), 1);
  at::Context& context = at::globalContext();
  if (options.contains("cudnn")) context.setUserEnabledCuDNN(options["cudnn"].get<bool>());
  if (options.contains("tf32")) {
    context.setAllowTF32CuBLAS(options["tf32"].get<bool>());
    context.setAllowTF32CuDNN(options["tf32"].get<bool>());
  }
  if (options.contains("deterministic")) {
    const bool only = options["deterministic"].get<bool>();
    if (only) ::setenv(records::kCublasWorkspaceVariable, records::kDeterministicWorkspace, 1);
    context.setDeterministicAlgorithms(only, /*warn_only=*/false);
  }
}

// Once CUDA is initialised: throws TraceError where PyTorch has read other settings.
void check_allocator(const std::string& allocator) {
  const auto read = allocator_settings();
  if (read == allocator) return;
  throw TraceError("the CUDA allocator has the settings \"" + read + "\" and not \"" + allocator +
                   "\": something in this process used it before they were set");
}

// By handle and stream. PyTorch's tables begin with this map (WorkspaceMapWithMutex in
// ATen/cuda/CUDAContextLight.h); that header asks for cuBLAS's, which are not here, and a release
// that has no such table has no such function.
using Workspaces = std::map<std::tuple<void*, void*>, c10::DataPtr>;

void visit_table(const char* function, const char* library, const Device::VisitWorkspace& visit) {
  auto* const found = ::dlsym(RTLD_DEFAULT, function);
  if (found == nullptr) return;
  for (const auto& [owner, memory] : reinterpret_cast<Workspaces& (*)()>(found)())
    if (memory) visit(reinterpret_cast<std::uint64_t>(memory.get()), library);
}

namespace allocator = c10::cuda::CUDACachingAllocator;

// A CUDA card as cases see it. Real and emulated cards are one device: the same LibTorch code runs
// on both.
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

  void trace(AllocationSink& sink) override {
    tell_emulation_of_allocations();
    tracer_ = std::make_unique<AllocationTracer>(sink, c10::cuda::device_count());
    trace_pinned_memory(sink);
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

  void check_peaks(const records::Memory& traced) override {
    const auto stats = allocator::getDeviceStats(index_);
    expect("allocated", traced.peak_allocated_bytes, stats.allocated_bytes[0].peak);
    expect("requested", traced.peak_requested_bytes, stats.requested_bytes[0].peak);
    expect("reserved", traced.peak_reserved_bytes.value_or(0), stats.reserved_bytes[0].peak);
  }

  // Each workspace that PyTorch gave to a handle of cuBLAS or cuBLASLt and keeps for it. Where this
  // LibTorch keeps none (2.15 takes one for each call) there are none to visit.
  void visit_workspaces(const VisitWorkspace& visit) const override {
    visit_table("_ZN2at4cuda33cublas_handle_stream_to_workspaceEv", "cuBLAS", visit);
    visit_table("_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv", "cuBLASLt", visit);
  }

  void listen_to_workspaces(const VisitWorkspace& visit) override {
    listen_to_emulated_libraries(visit);
  }

  OutOfMemory last_out_of_memory() const override {
    return tracer_ ? tracer_->last_out_of_memory() : OutOfMemory{};
  }

  nlohmann::json settings() const override {
    const at::Context& context = at::globalContext();
    return {{"allocator", allocator_settings()},
            {"cudnn", context.userEnabledCuDNN()},
            {"tf32_cublas", context.allowTF32CuBLAS()},
            {"tf32_cudnn", context.allowTF32CuDNN()},
            {"deterministic", context.deterministicAlgorithms()}};
  }

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

  std::optional<records::Emulation> emulation() const override {
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
  std::unique_ptr<AllocationTracer> tracer_;
};

std::unique_ptr<Device> make_cuda_device(const DeviceRequest& request) {
  return std::make_unique<CudaDevice>(request);
}

}  // namespace
}  // namespace peakbench::recording

PEAKBENCH_DEVICE_MODULE("cuda", peakbench::recording::make_cuda_device)
