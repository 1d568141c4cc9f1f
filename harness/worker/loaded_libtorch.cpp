#include "worker/loaded_libtorch.h"

#include <ATen/Version.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "errors/errors.h"
#include "manifest/worker.h"

namespace peakbench::worker {
namespace {

// "..., COMMIT_SHA=70d99e99, CUDA_VERSION=13.0, ..."
std::string setting(const std::string& build, const std::string& name) {
  const auto at = build.find(name + "=");
  if (at == std::string::npos) return "";
  const auto begin = at + name.size() + 1;
  return build.substr(begin, build.find_first_of(", \n", begin) - begin);
}

}  // namespace

std::string why_another_libtorch(const std::string& expected, const std::string& build) {
  const auto first = expected.find(' '), second = expected.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  const auto git_version = expected.substr(first + 1, second - first - 1);
  const auto cuda = expected.substr(second + 1);
  const auto git_of_loaded = setting(build, "COMMIT_SHA");
  // A build without CUDA does not name a version of it.
  auto cuda_of_loaded = setting(build, "CUDA_VERSION");
  if (cuda_of_loaded.empty()) cuda_of_loaded = manifest::kNoCuda;
  const bool same_git = git_of_loaded.empty() || git_of_loaded == git_version;
  if (git_of_loaded.empty() || (same_git && cuda_of_loaded == cuda)) return "";
  return "PyTorch in the environment is torn: its version.py says " + expected.substr(0, first) +
         " (revision " + git_version + ", CUDA " + cuda + "), its libraries are of revision " +
         git_of_loaded + ", CUDA " + cuda_of_loaded +
         ". Install it anew: pip install --force-reinstall torch==" +
         expected.substr(0, expected.find_first_of("+ "));
}

void check_loaded_libtorch() {
  const char* expected = std::getenv(manifest::kLibtorchVariable);
  if (expected == nullptr) return;
  if (const auto why = why_another_libtorch(expected, at::show_config()); !why.empty())
    throw ConfigError(why);
}

}  // namespace peakbench::worker
