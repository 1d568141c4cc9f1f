#include "workers/build_tools.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <vector>

#include "errors/errors.h"
#include "files/file.h"
#include "process/command.h"
#include "process/find_program.h"
#include "pytorch/compiler.h"
#include "workers/build.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

constexpr int kLeastMajor = 3, kLeastMinor = 25;  // as in CMakeLists.txt
constexpr auto kPatience = std::chrono::seconds(20);

std::optional<fs::path> find(const std::string& name, const std::string& python) {
  if (const auto found = process::find_program(name)) return found;
  const auto beside = fs::absolute(python).parent_path() / name;
  if (!python.empty() && files::is_there(beside.string())) return beside;
  return std::nullopt;
}

std::string problem_of_cmake(const std::optional<fs::path>& cmake) {
  const auto fix =
      fmt::format("install {}.{} or later: pip install cmake", kLeastMajor, kLeastMinor);
  if (!cmake) return "there is no cmake; " + fix;
  const auto said = process::ask_command({{cmake->string(), "--version"}, kPatience});
  int major = 0, minor = 0;
  if (!said.ok() || std::sscanf(said.out.c_str(), "cmake version %d.%d", &major, &minor) != 2)
    return fmt::format("{} does not say its version; {}", cmake->string(), fix);
  if (major < kLeastMajor || (major == kLeastMajor && minor < kLeastMinor))
    return fmt::format("{} is CMake {}.{}; {}", cmake->string(), major, minor, fix);
  return "";
}

std::string problem_of_compiler() {
  // CMake takes this one, and no other.
  if (const char* named = std::getenv("CXX"); named != nullptr && *named != '\0')
    if (!pytorch::is_command(named))
      return fmt::format("CXX={}: there is no such compiler; name yours, or unset it", named);
  try {
    pytorch::find_compiler();
    return "";
  } catch (const ConfigError& error) {
    return fmt::format(
        "{}; install one: apt-get install g++, dnf install gcc-c++, conda install gxx",
        error.what());
  }
}

std::string problem_of_headers(const pytorch::TorchInUse& torch) {
  if (!files::is_there((torch.folder / "include/ATen/ATen.h").string()))
    return fmt::format("{} has no headers (include/ATen/ATen.h); install PyTorch from a wheel",
                       torch.folder.string());
  if (torch.cuda.empty()) return "";
  try {
    pytorch::cuda_headers(torch.folder);
    return "";
  } catch (const ConfigError& error) {
    return fmt::format("{}; pip install nvidia-cuda-runtime (nvidia-cuda-runtime-cu12 for CUDA 12)",
                       error.what());
  }
}

std::string problem_of_disk(const fs::path& cache) {
  auto there = cache;
  while (!files::is_there(there.string()) && there != there.parent_path())
    there = there.parent_path();
  std::error_code error;
  const auto space = fs::space(there, error);
  constexpr std::uintmax_t kGiB = std::uintmax_t{1} << 30;
  if (error || space.available >= kBuildDiskGiB * kGiB) return "";
  return fmt::format(
      "{:.1f} GiB are free in {}, and the build takes up to {}; make room, or set XDG_CACHE_HOME "
      "to "
      "a folder on another disk",
      static_cast<double>(space.available) / static_cast<double>(kGiB), there.string(),
      kBuildDiskGiB);
}

}  // namespace

BuildTools find_build_tools(const pytorch::TorchInUse& torch, const fs::path& sources,
                            const std::string& python, const fs::path& cache) {
  std::vector<std::string> problems;
  const auto note = [&](const std::string& problem) {
    if (!problem.empty()) problems.push_back(problem);
  };
  if (!files::is_there((sources / "CMakeLists.txt").string()))
    note(fmt::format("the sources are not in {}; name their folder with {}", sources.string(),
                     kSourceVariable));
  note(problem_of_compiler());
  const auto cmake = find("cmake", python), ninja = find("ninja", python),
             make = find("make", python);
  note(problem_of_cmake(cmake));
  if (!ninja && !make) note("there is neither ninja nor make; pip install ninja");
  note(problem_of_headers(torch));
  note(problem_of_disk(cache));
  if (!problems.empty())
    throw ConfigError(fmt::format("no worker can be built for PyTorch {} in {}:\n{}", torch.version,
                                  torch.folder.string(), fmt::join(problems, "\n")));
  return {*cmake, ninja ? "Ninja" : "Unix Makefiles", (ninja ? *ninja : *make).parent_path()};
}

}  // namespace peakbench::workers
