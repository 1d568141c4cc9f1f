#include "device/preload.h"

#include <dlfcn.h>

#include "device/registry.h"

namespace peakbench::device {

void load_module_of(result::DeviceKind kind) {
  ::dlopen(module_path(result::facts_of(kind).module).c_str(), RTLD_NOW | RTLD_GLOBAL);
}

std::string why_not_forked() {
  // Exported by the emulated card's stand-ins; a real driver says nothing.
  const auto in_use =
      reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "peakbench_emulator_in_use"));
  if (in_use == nullptr) return "its CUDA is not the emulated card's";
  return in_use() == 0 ? "" : "CUDA is in use already";
}

}  // namespace peakbench::device
