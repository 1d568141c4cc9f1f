// Opens LibTorch's CUDA half and our module for it at run time, so that nothing else links CUDA.
#include <dlfcn.h>

#include <filesystem>

#include "device/device.h"
#include "device/preload.h"
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

constexpr const char* kLibrary = "libtorch_cuda.so";

std::string module_path() {
  return program_folder() / ".." / "lib" / "peakbench" / "libpeakbench_cuda.so";
}

}  // namespace

void load_cuda() {
  for (const auto& library : {std::string(kLibrary), module_path()})
    ::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

std::string why_not_forked() {
  // Exported by the emulated card's stand-ins; a real driver says nothing.
  const auto in_use =
      reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "peakbench_emulator_in_use"));
  if (in_use == nullptr) return "its CUDA is not the emulated card's";
  return in_use() == 0 ? "" : "CUDA is in use already";
}

std::unique_ptr<Device> make_cuda_device(const std::string& name, const nlohmann::json& options) {
  open_or_explain(kLibrary, name);
  const auto module = module_path();
  void* handle = open_or_explain(module, name);
  const auto make = reinterpret_cast<MakeCudaDevice>(::dlsym(handle, "peakbench_make_cuda_device"));
  if (make == nullptr) throw ConfigError(module + ": has no entry peakbench_make_cuda_device");
  return std::unique_ptr<Device>(make(name, options));
}

}  // namespace peakbench::device
