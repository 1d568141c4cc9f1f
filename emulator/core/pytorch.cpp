#include "core/pytorch.h"

#include <link.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <set>

#include "core/machine.h"
#include "core/symbols.h"
#include "core/vendor_versions.h"

namespace peakbench::emulator {

std::string loaded_library(const char* name) {
  struct Search {
    const char* name;
    std::string found;
  } search{name, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& wanted = *static_cast<Search*>(data);
        const char* slash = std::strrchr(info->dlpi_name, '/');
        if (!slash || std::strcmp(slash + 1, wanted.name) != 0) return 0;
        wanted.found = info->dlpi_name;
        return 1;
      },
      &search);
  return search.found;
}

bool is_pytorchs(const void* code) {
  // PyTorch is never unloaded, so that its addresses stay its own; others may be given anew.
  static std::mutex mutex;
  static auto* const seen = new std::set<const void*>;
  const std::lock_guard lock(mutex);
  if (seen->contains(code)) return true;
  static constexpr const char* kLibraries[] = {"libtorch_cuda.so", "libc10_cuda.so",
                                               "libtorch_cpu.so", "libtorch_python.so"};
  const bool is =
      std::ranges::any_of(kLibraries, [&](const char* library) { return lies_in(code, library); });
  if (is) seen->insert(code);
  return is;
}

namespace {

// torch of torch/lib/libtorch_cpu.so.
VendorVersions of_loaded_pytorch() {
  const auto library = loaded_library("libtorch_cpu.so");
  const auto folder = library.substr(0, library.rfind("/lib/"));
  return library.empty() || folder == library ? VendorVersions() : vendor_versions_beside(folder);
}

}  // namespace

int cudnn_version() {
  if (card().cudnn_version) return card().cudnn_version;
  static const int found = of_loaded_pytorch().cudnn;
  return found;
}

int nccl_version() {
  if (card().nccl_version) return card().nccl_version;
  static const int found = of_loaded_pytorch().nccl;
  return found;
}

}  // namespace peakbench::emulator
