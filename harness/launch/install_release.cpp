#include "launch/install_release.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/atomic_file.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/fnv1a.h"
#include "base/regular_file.h"
#include "host/compiled_library.h"
#include "launch/worker_choice.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReleasesKind = "releases";
constexpr std::string_view kRelease = "torch-";
// By this name code is known for a library's, and not for the user's.
constexpr const char* kPackages = "site-packages";

// 2.6: the newest of 2.6; 2.6.0: that one, whichever CUDA it is for.
std::string requirement_of(const std::string& version) {
  if (version == kNewest) return "torch";
  constexpr std::string_view kLetters = "0123456789.+abcdefghijklmnopqrstuvwxyz";
  if (version.find_first_not_of(kLetters) != std::string::npos)
    throw ConfigError(
        fmt::format("--torch {}: expected a version, like 2.15 or {}", version, kNewest));
  const bool is_whole =
      version.find('+') != std::string::npos || std::ranges::count(version, '.') >= 2;
  return fmt::format("torch=={}{}", version, is_whole ? "" : ".*");
}

class Installer {
 public:
  Installer(const ReleaseOrder& order, const BuildListener& listener)
      : order_(order), listener_(listener), cache_(pytorch::cache_folder(kReleasesKind)) {
    if (!order.requirements.empty())
      requirements_ = files::read_regular_file(order.requirements, files::kMostSmallText);
  }

  std::optional<Release> go() {
    pytorch::make_cache_folder(cache_);
    const files::FileLock lock(
        (cache_ / "install.lock").string(),
        [this] { listener_.say("Waiting for another process, which installs a PyTorch."); },
        listener_.cancelled);
    if (!lock.is_held()) return std::nullopt;
    const UnfinishedFolder unfinished(cache_);
    auto version = installed();
    if (version.empty()) version = version_of(unfinished.path());
    if (version.empty()) return std::nullopt;
    const auto folder = cache_ / folder_name(version);
    if (!files::is_folder(folder.string()) && !install(version, folder, unfinished.path()))
      return std::nullopt;
    if (const auto why = pytorch::why_not_trusted(folder); !why.empty())
      throw ConfigError(fmt::format("{}: {}", folder.string(), why));
    return Release{folder / kPackages, pytorch::torch_in(folder / kPackages / "torch")};
  }

 private:
  // What is installed by one Python is nothing for another.
  std::string folder_name(const std::string& version) const {
    const auto what = fs::canonical(order_.python).string() + "\n" + requirements_;
    return fmt::format("{}{}-{:08x}", kRelease, version, fnv1a_32(what));
  }

  // The newest that is there of what was asked for; which one is the newest of all, only an index
  // knows. Empty: none.
  std::string installed() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(cache_)) {
      const auto name = entry.path().filename().string();
      if (!name.starts_with(kRelease)) continue;
      const auto version = name.substr(kRelease.size(), name.rfind('-') - kRelease.size());
      if (planning::is_start_of(order_.version, version) && name == folder_name(version))
        found.push_back(version);
    }
    const auto newest = std::ranges::max_element(found, {}, numbers_of);
    return newest == found.end() ? "" : *newest;
  }

  // Of it and the requirements together, before anything is downloaded for long. Empty: cancelled.
  std::string version_of(const fs::path& scratch) const {
    const auto report = (scratch / "report.json").string();
    std::vector<std::string> arguments{"--dry-run", "--ignore-installed",
                                       "--no-deps", "--report",
                                       report,      requirement_of(order_.version)};
    if (!requirements_.empty())
      arguments.insert(arguments.end(), {"--requirement", order_.requirements});
    if (!pip(arguments)) return "";
    const auto found = files::read_json_file(report);
    try {
      for (const auto& one : found.at("install"))
        if (const auto& about = one.at("metadata"); about.at("name") == "torch")
          return about.at("version").get<std::string>();
      throw ConfigError("pip would install no package torch");
    } catch (const nlohmann::json::exception&) {
      throw ConfigError(
          "pip does not say which PyTorch it would install; Peakbench needs pip 22.2 or newer "
          "(python3 -m pip install --upgrade pip)");
    }
  }

  bool install(const std::string& version, const fs::path& folder, const fs::path& scratch) {
    listener_.say(
        fmt::format("Installing PyTorch {} without NVIDIA's packages, once: 1 to 2 GB in {}",
                    version, folder.string()));
    const auto made = scratch / "made", target = made / kPackages;
    if (!pip({"--no-compile", "--no-deps", "--target", target.string(), "torch==" + version,
              "filelock", "fsspec", "jinja2", "markupsafe", "mpmath", "networkx", "setuptools",
              "sympy", "typing-extensions"}))
      return false;
    // For the libraries that are compiled for it.
    if (const auto cuda = pytorch::torch_in(target / "torch").cuda; !cuda.empty()) {
      const auto major = cuda.substr(0, cuda.find('.'));
      const auto headers = major == "12" || major == "11"
                               ? "nvidia-cuda-runtime-cu" + major
                               : fmt::format("nvidia-cuda-runtime=={}.*", major);
      if (!pip({"--no-compile", "--no-deps", "--target", target.string(), headers})) return false;
    }
    if (!requirements_.empty() && !pip({"--no-compile", "--no-deps", "--target", target.string(),
                                        "--requirement", order_.requirements}))
      return false;
    close_to_others(made);
    std::error_code error;
    fs::rename(made, folder, error);
    if (error) files::cannot_write(folder.string(), error.value());
    return true;
  }

  // False: cancelled.
  bool pip(std::vector<std::string> arguments) const {
    std::vector<std::string> command{order_.python,
                                     "-m",
                                     "pip",
                                     "install",
                                     "--progress-bar",
                                     "off",
                                     "--disable-pip-version-check",
                                     "--no-input"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_logged({command,
                       {},
                       (cache_ / "install.log").string(),
                       fmt::format("PyTorch {}{} could not be installed", order_.version,
                                   requirements_.empty() ? "" : ", or " + order_.requirements)},
                      listener_);
  }

  const ReleaseOrder& order_;
  const BuildListener& listener_;
  const fs::path cache_;
  std::string requirements_;
};

}  // namespace

std::optional<Release> install_release(const ReleaseOrder& order, const BuildListener& listener) {
  return Installer(order, listener).go();
}

}  // namespace peakbench::launch
