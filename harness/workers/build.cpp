#include "workers/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "files/file_lock.h"
#include "process/process.h"
#include "pytorch/library_cache.h"
#include "pytorch/torch_release.h"
#include "workers/build_tools.h"
#include "workers/choose.h"
#include "workers/logged.h"
#include "workers/worker_folder.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

std::string folder_name(const std::string& version) {
  std::string name = "torch-" + version;
  std::ranges::replace_if(
      name,
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '+'; },
      '-');
  return name;
}

class Build {
 public:
  Build(const BuildOrder& order, const BuildListener& listener)
      : order_(order),
        listener_(listener),
        cache_(pytorch::cache_folder(kCacheKind)),
        target_(cache_ / folder_name(order.torch.version)),
        log_(target_.string() + ".log") {}

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
        "Building the worker for PyTorch {} in {}: some minutes with {} compiler{} at a time, "
        "and up to {} GiB of disk meanwhile.",
        order_.torch.version, order_.torch.folder.string(), order_.jobs,
        order_.jobs == 1 ? "" : "s", kBuildDiskGiB));
    return build(tools);
  }

 private:
  // Empty: there is none that does.
  fs::path found() const {
    for (const auto& one : list_workers(order_.carried, order_.peakbench)) {
      if (!one.problem.empty() || !serves(one.stamp, order_.torch)) continue;
      const bool built = one.folder == target_ && one.torch == order_.torch.folder;
      if (built || (!one.in_cache && has_cuda_of(one.stamp))) return one.folder;
    }
    return {};
  }

  bool has_cuda_of(const manifest::Stamp& worker) const {
    const auto major = [](const std::string& cuda) { return pytorch::cuda_number(cuda) / 1000; };
    return order_.torch.cuda.empty() || major(order_.torch.cuda) == major(worker.libtorch_cuda);
  }

  BuildEnd build(const BuildTools& tools) {
    const UnfinishedFolder unfinished(cache_);
    const auto made = unfinished.path() / "build", installed = unfinished.path() / "install";
    files::remove_file(log_);
    const std::string cmake = tools.cmake.string();
    const std::vector<std::vector<std::string>> commands{
        {cmake, "-S", order_.sources.string(), "-B", made.string(), "-G", tools.generator,
         "-DCMAKE_BUILD_TYPE=Release", "-DPEAKBENCH_WORKER_ONLY=ON",
         "-DPEAKBENCH_TORCH_DIR=" + order_.torch.folder.string()},
        {cmake, "--build", made.string(), "--parallel", std::to_string(order_.jobs)},
        {cmake, "--install", made.string(), "--prefix", installed.string()}};
    for (const auto& command : commands)
      if (!run(command, tools)) return {};
    finish(installed, unfinished.path());
    return {target_, false};
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
          "All "
          "that was said is in {}",
          order_.torch.version,
          made.problem.empty() ? "it is for " + made.stamp.libtorch_version : made.problem,
          order_.sources.string(), log_));
    std::error_code error;
    if (files::is_there(target_.string())) fs::rename(target_, unfinished / "old", error);
    if (!error) fs::rename(installed, target_, error);
    if (error) files::cannot_write(target_.string(), error.value());
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
  fs::path cache_, target_;
  std::string log_;
};

}  // namespace

BuildEnd build_worker(const BuildOrder& order, const BuildListener& listener) {
  return Build(order, listener).go();
}

}  // namespace peakbench::workers
