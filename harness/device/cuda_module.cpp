// Opens LibTorch's CUDA half and our module for it at run time, so that nothing else links CUDA.
#include <dlfcn.h>

#include <filesystem>

#include "device/device.h"
#include "errors/errors.h"
#include "errors/host_limits.h"

namespace peakbench::device {
namespace {

std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

void* open_or_explain(const std::string& library, const std::string& device) {
  // Global: the module and LibTorch's own later openings (NVRTC) resolve against it.
  if (void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
  const std::string problem = ::dlerror();
  if (is_of_host(problem)) throw HostError(problem + "; " + no_memory_text(0));
  throw ConfigError("device '" + device + "': " + problem +
                    ". A real card needs a driver and a torch installed with its vendor libraries "
                    "(set PEAKBENCH_TORCH_DIR); `peakbench doctor` says what is missing.");
}

}  // namespace

std::unique_ptr<Device> make_cuda_device(const std::string& name, const nlohmann::json& options) {
  open_or_explain("libtorch_cuda.so", name);
  const auto module = program_folder() / ".." / "lib" / "peakbench" / "libpeakbench_cuda.so";
  void* handle = open_or_explain(module.string(), name);
  const auto make = reinterpret_cast<MakeCudaDevice>(::dlsym(handle, "peakbench_make_cuda_device"));
  if (make == nullptr)
    throw ConfigError(module.string() + ": has no entry peakbench_make_cuda_device");
  return std::unique_ptr<Device>(make(name, options));
}

}  // namespace peakbench::device
