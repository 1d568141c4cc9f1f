#include "inventory/driver.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <regex>

namespace peakbench::inventory {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb ..." -> 550.54.14
std::string version_in(const std::string& line) {
  static const std::regex version(R"((?:^|\s)(\d+\.\d+(?:\.\d+)?)(?:\s|$))");
  std::smatch found;
  return std::regex_search(line, found, version) ? found[1].str() : "";
}

// NVIDIA, "CUDA Compatibility": the first driver branch of each CUDA major version.
int first_branch_of(int cuda_major) { return cuda_major >= 13 ? 580 : cuda_major == 12 ? 525 : 0; }

}  // namespace

DriverFound driver_for(const std::string& version_line, const std::string& libtorch_cuda) {
  DriverFound found;
  found.version = version_in(version_line);
  if (found.version.empty()) return found;
  const int needed = first_branch_of(std::atoi(libtorch_cuda.c_str()));
  if (std::atoi(found.version.c_str()) < needed)
    found.problem = fmt::format(
        "LibTorch is built for CUDA {}, which needs a driver of branch {} or later: update the "
        "driver, or set PEAKBENCH_TORCH_DIR to a LibTorch for an older CUDA",
        libtorch_cuda, needed);
  return found;
}

DriverFound driver_of_this_machine(const std::string& libtorch_cuda) {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return driver_for(line, libtorch_cuda);
}

}  // namespace peakbench::inventory
