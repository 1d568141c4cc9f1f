// A release of PyTorch in a folder of its own, for programs that are run with several.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "host/torch_in_use.h"
#include "launch/logged_command.h"

namespace peakbench::launch {

struct ReleaseOrder {
  std::string version;       // 2.6, 2.6.0, 2.6.0+cu124, or newest (worker_choice.h)
  std::string python;        // whose pip installs it, and which is to import it
  std::string requirements;  // a file for pip; empty: none
};

struct Release {
  std::filesystem::path packages;  // for PYTHONPATH
  pytorch::TorchInUse torch;
};

// Installs PyTorch with what its import needs, without NVIDIA's packages except CUDA's headers.
// Also installs the packages that the requirements name, without their dependencies. Kept in the
// user's cache, installed once for each Python, atomically. Nullopt: cancelled. Throws ConfigError
// with pip's last lines: no such release for this Python, no network, a full disk.
std::optional<Release> install_release(const ReleaseOrder& order, const BuildListener& listener);

}  // namespace peakbench::launch
