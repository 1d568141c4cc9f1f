#include "host/for_program.h"

#include <algorithm>

#include "core/vendor_versions.h"
#include "host/torch_release.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

// libcudart of libcudart.so.12.
std::string stem_of(const fs::path& library) {
  const auto name = library.filename().string();
  return name.substr(0, name.find(".so"));
}

// Those of CUDA 12 in place of their namesakes.
std::vector<fs::path> libraries_for_cuda12(const Installation& installation) {
  const auto& own = installation.cuda12_libraries;
  std::vector<fs::path> libraries;
  for (const fs::path& library : installation.libraries) {
    const auto replaced = std::ranges::any_of(
        own, [&](const fs::path& other) { return stem_of(other) == stem_of(library); });
    if (!replaced) libraries.push_back(library);
  }
  libraries.insert(libraries.end(), own.begin(), own.end());
  return libraries;
}

}  // namespace

Installation for_program(const Installation& installation, const std::optional<TorchInUse>& torch) {
  Installation fitted = installation;
  if (!torch) {
    const auto& others = installation.cuda12_libraries;
    fitted.libraries.insert(fitted.libraries.end(), others.begin(), others.end());
    return fitted;
  }
  fitted.libtorch_version = torch->version;
  fitted.libtorch_cuda = torch->cuda;
  fitted.cuda_version = cuda_number(torch->cuda);
  if (fitted.cuda_version / 1000 == 12 && !installation.cuda12_libraries.empty())
    fitted.libraries = libraries_for_cuda12(installation);
  if (auto found = architectures_of(torch->folder); !found.empty())
    fitted.architectures = std::move(found);
  const VendorVersions vendors = vendor_versions_beside(torch->folder.string());
  fitted.cudnn_version = vendors.cudnn;
  fitted.nccl_version = vendors.nccl;
  return fitted;
}

}  // namespace peakbench::emulator
