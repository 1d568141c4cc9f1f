#include "workers/build.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <vector>

#include "errors/errors.h"
#include "files/atomic_file.h"
#include "files/file.h"
#include "files/file_lock.h"
#include "process/process.h"
#include "pytorch/library_cache.h"
#include "pytorch/torch_release.h"
#include "text/printable.h"
#include "workers/build_tools.h"
#include "workers/choose.h"
#include "workers/worker_folder.h"

namespace peakbench::workers {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnfinished = ".build-";

std::string folder_name(const std::string& version) {
  std::string name = "torch-" + version;
  std::ranges::replace_if(
      name,
      [](char c) { return !std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '+'; },
      '-');
  return name;
}

// Gone with the object, whatever became of the build; and what a killed one left.
class Unfinished {
 public:
  explicit Unfinished(const fs::path& cache) {
    remove_leftovers(cache);
    std::string name = (cache / (std::string(kUnfinished) + "XXXXXX")).string();
    if (mkdtemp(name.data()) == nullptr) files::cannot_write(name, errno);
    path_ = name;
  }
  ~Unfinished() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const fs::path& path() const { return path_; }

 private:
  static void remove_leftovers(const fs::path& cache) {
    std::error_code ignored;
    std::vector<fs::path> old;
    for (const auto& entry : fs::directory_iterator(cache, ignored))
      if (entry.path().filename().string().starts_with(kUnfinished)) old.push_back(entry.path());
    for (const auto& path : old) fs::remove_all(path, ignored);
  }

  fs::path path_;
};

// The last whole line that a growing file has.
class LastLine {
 public:
  explicit LastLine(const std::string& path) : file_(path) {}

  // Empty: none since the last call.
  std::string take() {
    std::array<char, 8192> bytes;
    file_.clear();
    while (file_.read(bytes.data(), bytes.size()), file_.gcount() > 0)
      rest_.append(bytes.data(), static_cast<std::size_t>(file_.gcount()));
    const auto end = rest_.rfind('\n');
    if (end == std::string::npos) return "";
    const auto before = end == 0 ? std::string::npos : rest_.rfind('\n', end - 1);
    const auto start = before == std::string::npos ? 0 : before + 1;
    const auto line = rest_.substr(start, end - start);
    rest_.erase(0, end + 1);
    return printable(line);
  }

 private:
  std::ifstream file_;
  std::string rest_;
};

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
    const Unfinished unfinished(cache_);
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
    process::ProcessSpec spec;
    spec.arguments = command;
    const char* path = std::getenv("PATH");
    spec.environment = {
        {"PATH", fmt::format("{}{}{}", path ? path : "", path ? ":" : "", tools.beside.string())}};
    spec.log_path = log_;
    // Before it grows, so that nothing of the command before is read again.
    std::ofstream(log_, std::ios::app).flush();
    LastLine last(log_);
    std::string latest;
    const auto end = process::run_process(
        spec, [](const std::string&) {},
        [&] {
          if (auto line = last.take(); !line.empty()) latest = std::move(line);
          if (!latest.empty()) listener_.progress(latest);
          return listener_.cancelled();
        });
    if (end.stopped == process::Stop::kInterrupt || listener_.cancelled()) return false;
    if (end.start_error.empty() && end.exit_code == 0 && end.signal == 0) return true;
    fail(command, end);
  }

  [[noreturn]] void fail(const std::vector<std::string>& command,
                         const process::ProcessEnd& end) const {
    const auto how = !end.start_error.empty() ? end.start_error
                     : end.signal != 0        ? fmt::format("ended by signal {}", end.signal)
                                              : fmt::format("exit code {}", end.exit_code);
    throw ConfigError(fmt::format("the worker for PyTorch {} could not be built: {} {}: {}{}\n{}",
                                  order_.torch.version, fs::path(command[0]).filename().string(),
                                  command[1], how, last_words(end.last_words), about_log(end)));
  }

  static std::string last_words(const std::string& said) {
    constexpr std::size_t kLines = 15;
    std::size_t at = said.find_last_not_of("\n ");
    if (at == std::string::npos) return "";
    const auto end = at + 1;
    for (std::size_t lines = 0; lines < kLines && at != std::string::npos && at > 0; ++lines)
      at = said.rfind('\n', at - 1);
    const auto start = at == std::string::npos || at == 0 ? 0 : at + 1;
    return "\n" + escaped_controls(said.substr(start, end - start));
  }

  std::string about_log(const process::ProcessEnd& end) const {
    if (!end.log_error.empty())
      return fmt::format("Not all of it is in {}: {}", log_, end.log_error);
    return fmt::format("All that was said is in {}", log_);
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

  static void close_to_others(const fs::path& folder) {
    constexpr auto kOthers = fs::perms::group_write | fs::perms::others_write;
    fs::permissions(folder, kOthers, fs::perm_options::remove);
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (!entry.is_symlink()) fs::permissions(entry.path(), kOthers, fs::perm_options::remove);
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
