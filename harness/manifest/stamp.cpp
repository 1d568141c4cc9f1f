#include <fmt/format.h>

#include "manifest/manifest.h"

namespace peakbench::manifest {

Stamp own_stamp() {
  return {.sdk_revision = kSdkRevision,
          .libtorch_version = kLibTorchVersion,
          .libtorch_git_version = kLibTorchGitVersion,
          .libtorch_cuda = kLibTorchCuda,
          .cxx_abi = kCxxAbi};
}

std::vector<std::string> compare(const Stamp& plugin, const Stamp& own) {
  std::vector<std::string> mismatches;
  const auto check = [&](const char* field, const auto& theirs, const auto& ours) {
    if (theirs == ours) return;
    mismatches.push_back(
        fmt::format("{}: plugin has {}, this Peakbench needs {}", field, theirs, ours));
  };
  check("sdk_revision", plugin.sdk_revision, own.sdk_revision);
  check("libtorch_version", plugin.libtorch_version, own.libtorch_version);
  check("libtorch_git_version", plugin.libtorch_git_version, own.libtorch_git_version);
  check("libtorch_cuda", plugin.libtorch_cuda, own.libtorch_cuda);
  check("cxx_abi", plugin.cxx_abi, own.cxx_abi);
  return mismatches;
}

}  // namespace peakbench::manifest
