#include "launch/worker_build.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/fnv1a.h"
#include "base/regular_file.h"
#include "host/command.h"
#include "host/compiled_library.h"
#include "host/compiler.h"
#include "host/process.h"
#include "launch/worker_choice.h"
#include "launch/worker_folder.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

constexpr int kLeastMajor = 3, kLeastMinor = 25;  // as in CMakeLists.txt
constexpr auto kPatience = std::chrono::seconds(20);
constexpr std::uintmax_t kBuildDiskGiB = 1;  // at most, while it is built: 0.6 measured

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
      "{:.1f} GiB are free in {}, and the build takes up to {}; free some space, or set "
      "XDG_CACHE_HOME to a folder on another disk",
      static_cast<double>(space.available) / static_cast<double>(kGiB), there.string(),
      kBuildDiskGiB);
}

// What compiling a worker needs of the machine.
struct BuildTools {
  fs::path cmake;
  std::string generator;  // "Ninja", "Unix Makefiles"
  fs::path beside;        // where ninja is, for CMake; empty: on PATH
};

// Looks on PATH, and beside `python` (pip installs CMake and Ninja there). Throws ConfigError with
// a sentence for each thing that is missing, and what to do.
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

std::string folder_name(const std::string& version) {
  std::string name = "torch-" + version;
  std::ranges::replace_if(
      name,
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '+'; },
      '-');
  return name;
}

// What a worker is compiled from, beside the files of the folder itself (ci/wheel_sources). A
// clone, which may be the sources too, has builds and downloads beside them.
constexpr std::array kSourceFolders{"cmake",  "emulator", "harness",
                                    "models", "plugins",  "third_party"};

// A build goes on in a folder that an earlier one left, where it is of these very sources.
std::string fingerprint(const BuildOrder& order) {
  std::vector<std::string> files;
  const auto note = [&](const fs::directory_entry& entry) {
    if (entry.is_regular_file())
      files.push_back(fmt::format("{} {} {}", entry.path().string(), entry.file_size(),
                                  entry.last_write_time().time_since_epoch().count()));
  };
  for (const auto& entry : fs::directory_iterator(order.sources)) note(entry);
  for (const char* name : kSourceFolders)
    if (const auto folder = order.sources / name; files::is_folder(folder.string()))
      for (const auto& entry : fs::recursive_directory_iterator(folder)) note(entry);
  std::ranges::sort(files);
  auto hash = fnv1a_64(order.torch.folder.string() + order.torch.git_version);
  for (const auto& file : files) hash = fnv1a_64(file, hash);
  return fmt::format("{:016x}\n", hash);
}

class Build {
 public:
  Build(const BuildOrder& order, const BuildListener& listener)
      : order_(order),
        listener_(listener),
        cache_(pytorch::cache_folder(kCacheKind)),
        whole_(cache_ / folder_name(order.torch.version)),
        first_(cache_ / ("quickstart-" + folder_name(order.torch.version))),
        made_(cache_ / ("build-" + folder_name(order.torch.version))),
        target_(order.quickstart ? first_ : whole_),
        log_(whole_.string() + ".log") {}

  BuildEnd go() {
    if (const auto folder = found(); !folder.empty()) return {folder, true};
    const auto tools = find_build_tools(order_.torch, order_.sources, order_.python, cache_);
    pytorch::make_cache_folder(cache_);
    const files::FileLock lock(
        (cache_ / "build.lock").string(),
        [this] { listener_.say("Waiting for another process, which builds a worker."); },
        listener_.cancelled);
    if (!lock.is_held()) return {};
    if (const auto folder = found(); !folder.empty()) return {folder, true};
    listener_.say(fmt::format(
        "Building the worker for PyTorch {} in {}{}: some minutes with {} compiler{} at a time, "
        "and up to {} GiB of disk meanwhile.",
        order_.torch.version, order_.torch.folder.string(),
        order_.quickstart ? ", with what is needed here" : "", order_.jobs,
        order_.jobs == 1 ? "" : "s", kBuildDiskGiB));
    return build(tools);
  }

 private:
  // Empty: there is none that does.
  fs::path found() const {
    for (const auto& one : list_workers(order_.carried, order_.peakbench)) {
      if (!one.problem.empty() || !serves(one.stamp, order_.torch)) continue;
      const bool built = one.folder == whole_ && one.torch == order_.torch.folder;
      if (built || (!one.in_cache && has_cuda_of(one.stamp))) return one.folder;
    }
    return order_.quickstart && is_first_there() ? first_ : fs::path();
  }

  bool is_first_there() const {
    const auto one = read_cached_worker(first_, order_.peakbench);
    return one.problem.empty() && serves(one.stamp, order_.torch) &&
           one.torch == order_.torch.folder;
  }

  bool has_cuda_of(const planning::Stamp& worker) const {
    const auto major = [](const std::string& cuda) { return pytorch::cuda_number(cuda) / 1000; };
    return order_.torch.cuda.empty() || major(order_.torch.cuda) == major(worker.libtorch_cuda);
  }

  BuildEnd build(const BuildTools& tools) {
    const UnfinishedFolder unfinished(cache_);
    const auto installed = unfinished.path() / "install";
    files::remove_file(log_);
    take_build_folder();
    bool done = false;
    const KeptIf kept{made_, done};
    const std::string cmake = tools.cmake.string();
    const std::vector<std::vector<std::string>> commands{
        {cmake, "-S", order_.sources.string(), "-B", made_.string(), "-G", tools.generator,
         "-DCMAKE_BUILD_TYPE=Release", "-DPEAKBENCH_WORKER_ONLY=ON",
         fmt::format("-DPEAKBENCH_QUICKSTART={}", order_.quickstart ? "ON" : "OFF"),
         "-DPEAKBENCH_TORCH_DIR=" + order_.torch.folder.string()},
        {cmake, "--build", made_.string(), "--parallel", std::to_string(order_.jobs)},
        {cmake, "--install", made_.string(), "--prefix", installed.string()}};
    for (const auto& command : commands)
      if (!run(command, tools)) return {};
    finish(installed, unfinished.path());
    done = order_.quickstart;
    return {target_, false};
  }

  // Gone with the object, unless `kept`.
  struct KeptIf {
    const fs::path& folder;
    const bool& kept;
    ~KeptIf() {
      std::error_code ignored;
      if (!kept) fs::remove_all(folder, ignored);
    }
  };

  void take_build_folder() const {
    const auto name = (made_ / "fingerprint").string(), mine = fingerprint(order_);
    if (files::is_there(name) && pytorch::why_not_trusted(made_).empty() &&
        files::read_regular_file(name, files::kMostSmallText) == mine)
      return;
    fs::remove_all(made_);
    fs::create_directory(made_);
    files::write_file_atomically(name, mine);
  }

  // False: cancelled.
  bool run(const std::vector<std::string>& command, const BuildTools& tools) const {
    const char* path = std::getenv("PATH");
    return run_logged(
        {command,
         {{"PATH",
           fmt::format("{}{}{}", path ? path : "", path ? ":" : "", tools.beside.string())}},
         log_,
         fmt::format("the worker for PyTorch {} could not be built", order_.torch.version)},
        listener_);
  }

  void finish(const fs::path& installed, const fs::path& unfinished) const {
    note_torch(installed);
    close_to_others(installed);
    const auto made = read_worker_folder(installed, order_.peakbench);
    if (!made.problem.empty() || !serves(made.stamp, order_.torch))
      throw ConfigError(fmt::format(
          "what was built is no worker for PyTorch {}: {}. Are {} the sources of this Peakbench? "
          "Its output is in {}",
          order_.torch.version,
          made.problem.empty() ? "it is for " + made.stamp.libtorch_version : made.problem,
          order_.sources.string(), log_));
    std::error_code error;
    if (files::is_there(target_.string())) fs::rename(target_, unfinished / "old", error);
    if (!error) fs::rename(installed, target_, error);
    if (error) files::cannot_write(target_.string(), error.value());
    if (!order_.quickstart) fs::remove_all(first_, error);  // the whole has it, too
  }

  // It loads that very PyTorch, wherever the one of the environment is.
  void note_torch(const fs::path& installed) const {
    const auto path = (installed / kWorkerFile).string();
    auto facts = files::read_json_file(path);
    if (facts.is_object()) facts["torch"] = order_.torch.folder.string();
    files::write_json_file(path, facts);
  }

  const BuildOrder& order_;
  const BuildListener& listener_;
  fs::path cache_, whole_, first_, made_, target_;
  std::string log_;
};

}  // namespace

BuildEnd build_worker(const BuildOrder& order, const BuildListener& listener) {
  return Build(order, listener).go();
}

}  // namespace peakbench::launch
