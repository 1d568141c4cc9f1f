#include "host/for_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "core/vendor_versions.h"
#include "pytorch/torch_release.h"

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

constexpr int kOldestMajor = 2, kOldestMinor = 6;

bool is_too_old(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor);
}

}  // namespace

Installation for_program(const Installation& installation,
                         const std::optional<pytorch::TorchInUse>& torch) {
  Installation fitted = installation;
  if (!torch) {
    const auto& others = installation.cuda12_libraries;
    fitted.libraries.insert(fitted.libraries.end(), others.begin(), others.end());
    return fitted;
  }
  fitted.libtorch_version = torch->version;
  fitted.libtorch_cuda = torch->cuda;
  fitted.cuda_version = pytorch::cuda_number(torch->cuda);
  if (fitted.cuda_version / 1000 == 12 && !installation.cuda12_libraries.empty())
    fitted.libraries = libraries_for_cuda12(installation);
  if (auto found = pytorch::architectures_of(torch->folder); !found.empty())
    fitted.architectures = std::move(found);
  const VendorVersions vendors = vendor_versions_beside(torch->folder.string());
  fitted.cudnn_version = vendors.cudnn;
  fitted.nccl_version = vendors.nccl;
  return fitted;
}

std::optional<std::string> why_torch_cannot_work(const pytorch::TorchInUse& torch,
                                                 const Installation& installation) {
  const std::string what = fmt::format("PyTorch {} in {}", torch.version, torch.folder.string());
  if (!torch.hip.empty())
    return fmt::format(
        "{} is built for ROCm {}, and the emulated card is a CUDA card. Install a build of PyTorch "
        "for CUDA",
        what, torch.hip);
  if (torch.cuda.empty())
    return fmt::format(
        "{} is built without CUDA, so it takes no memory of a card. Install a build of PyTorch for "
        "CUDA; no GPU and no driver is needed",
        what);
  if (is_too_old(torch.version))
    return fmt::format("{} is too old: the emulated card works with PyTorch {}.{} and later", what,
                       kOldestMajor, kOldestMinor);
  const auto& served = installation.cuda_majors;
  if (std::ranges::count(served, pytorch::cuda_number(torch.cuda) / 1000) == 0)
    return fmt::format(
        "{} is built for CUDA {}; this emulated card has the libraries of CUDA {}. Install a build "
        "of PyTorch for one of these",
        what, torch.cuda, fmt::join(served, " and "));
  return std::nullopt;
}

}  // namespace peakbench::emulator
