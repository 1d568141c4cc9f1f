#include "device/registry.h"

#include <dlfcn.h>

#include <filesystem>
#include <string_view>

#include "device/cpu_device.h"
#include "errors/errors.h"
#include "errors/host_limits.h"
#include "errors/host_memory.h"

namespace peakbench::device {
namespace {

constexpr const char* kEntry = "peakbench_device_module";

// Named here, and not registered by their own constructors: a linker drops an object of a static
// library that nobody names.
const DeviceModule* built_in(std::string_view name) {
  for (const auto* module : {&cpu_module()})
    if (module->name == name) return module;
  return nullptr;
}

[[noreturn]] void refuse_to_open(const result::Device& device, const std::string& problem) {
  if (is_of_host(problem)) throw HostError(problem + "; " + no_memory_text(0));
  throw ConfigError("device '" + device.id + "': " + problem + ". " + device.needs +
                    "; `peakbench doctor` says what is missing.");
}

void check_stamp(const std::string& path, const DeviceModule& module) {
  const auto refuse = [&](const std::string& has, const std::string& needs) {
    throw ConfigError(path + ": built for another Peakbench or LibTorch: it has " + has +
                      ", this worker needs " + needs + ". Install Peakbench whole.");
  };
  if (module.revision != kDeviceRevision)
    refuse("device revision " + std::to_string(module.revision), std::to_string(kDeviceRevision));
  if (std::string_view(module.build) != kBuildStamp) refuse(module.build, kBuildStamp);
}

}  // namespace

std::string module_path(const std::string& name) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return program / ".." / "lib" / "peakbench" / ("libpeakbench_" + name + ".so");
}

const DeviceModule& open_module(const std::string& path, const result::Device& device) {
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
  const std::string name = request.device.module;
  const auto* module = built_in(name);
  if (module == nullptr) module = &open_module(module_path(name), request.device);
  return module->make(request);
}

}  // namespace peakbench::device
