#include "recording/device.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>

#include <chrono>
#include <filesystem>
#include <string_view>

#include "base/errors.h"
#include "base/host_memory.h"
#include "recording/cpu_allocator.h"

namespace peakbench::recording {

std::int64_t Device::time_ns(const std::function<void()>& step) {
  synchronise();
  const auto start = std::chrono::steady_clock::now();
  step();
  synchronise();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start)
      .count();
}

namespace {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  c10::Device torch_device() const override { return c10::Device(c10::kCPU); }
  std::string clock() const override { return "steady_clock"; }

  void trace(AllocationSink& sink) override {
    last_failure_ = &trace_cpu_allocator(sink, limit_bytes_, CpuMemory::kDevice);
  }

  OutOfMemory last_out_of_memory() const override {
    return last_failure_ != nullptr ? *last_failure_ : OutOfMemory{};
  }

  nlohmann::json settings() const override {
    return {{"threads", at::get_num_threads()}, {"memory_limit_bytes", limit_bytes_}};
  }
  nlohmann::json environment() const override {
    return {{"cpu_capability", at::get_cpu_capability()}};
  }

 private:
  std::int64_t limit_bytes_;
  const OutOfMemory* last_failure_ = nullptr;
};

constexpr const char* kEntry = "peakbench_device_module";

[[noreturn]] void refuse_to_open(const records::Device& device, const std::string& problem) {
  if (is_of_host(problem)) throw HostError(problem + "; " + no_memory_text(0));
  throw ConfigError("device '" + device.id + "': " + problem + ". " + device.needs +
                    "; `peakbench doctor` says what is missing.");
}

void check_stamp(const std::string& path, const DeviceModule& module) {
  const auto refuse = [&](const std::string& has, const std::string& needs) {
    throw ConfigError(path + ": built for another Peakbench or LibTorch: it has " + has +
                      ", this worker needs " + needs + ". Install all of Peakbench.");
  };
  if (module.revision != kDeviceRevision)
    refuse("device revision " + std::to_string(module.revision), std::to_string(kDeviceRevision));
  if (std::string_view(module.build) != kBuildStamp) refuse(module.build, kBuildStamp);
}

// Beside the program: ../lib/peakbench/libpeakbench_NAME.so.
std::string module_path(const std::string& name) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return program / ".." / "lib" / "peakbench" / ("libpeakbench_" + name + ".so");
}

}  // namespace

const DeviceModule& open_module(const std::string& path, const records::Device& device) {
  // Global, with what it is linked with: LibTorch's own later openings (NVRTC) resolve against it.
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) refuse_to_open(device, ::dlerror());
  const auto* module = static_cast<const DeviceModule*>(::dlsym(library, kEntry));
  if (module == nullptr) throw ConfigError(path + ": has no entry " + kEntry);
  check_stamp(path, *module);
  if (std::string_view(module->name) != device.module)
    throw ConfigError(path + ": is the module " + module->name + ", not " + device.module);
  return *module;
}

std::unique_ptr<Device> make_device(const DeviceRequest& request) {
  const std::string& name = request.device.module;
  if (name == "cpu") return std::make_unique<CpuDevice>(request.memory_limit_bytes);
  return open_module(module_path(name), request.device).make(request);
}

void load_module_of(records::DeviceKind kind) {
  ::dlopen(module_path(records::facts_of(kind).module).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

std::string why_not_forked() {
  // Exported by the emulated card's stand-ins; a real driver says nothing.
  const auto in_use =
      reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "peakbench_emulator_in_use"));
  if (in_use == nullptr) return "its CUDA is not the emulated card's";
  return in_use() == 0 ? "" : "CUDA is in use already";
}

}  // namespace peakbench::recording
