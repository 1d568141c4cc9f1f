#include "cli/builds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "base/errors.h"
#include "cli/commands.h"
#include "cli/worker.h"
#include "launch/devices.h"
#include "launch/machine.h"
#include "launch/worker_choice.h"
#include "records/axes.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using planning::Worker;
using records::Axis;

planning::Build build_of(Worker worker, planning::Found plugins, const BuildOptions& options) {
  planning::Build build;
  build.devices = options.devices(worker);
  build.plugins = std::move(plugins);
  build.worker = std::make_shared<const Worker>(std::move(worker));
  return build;
}

// 2.15.0, and 2.15.0+cu132 where another of them is of that release.
void name_by_release(std::vector<planning::Build>& builds) {
  const auto version = [](const planning::Build& one) { return libtorch_version(*one.worker); };
  const auto release = [&](const planning::Build& one) { return launch::release_of(version(one)); };
  for (auto& one : builds) {
    const auto of_it = std::ranges::count(builds, release(one), release);
    one.torch = of_it == 1 ? release(one) : version(one);
  }
}

planning::Build build_with_plugins(World& world, const Worker& worker,
                                   const std::vector<planning::Folder>& of_suite,
                                   const BuildOptions& options) {
  return build_of(worker, find_plugins(world, worker, options.plugins, of_suite), options);
}

void check_different(const std::vector<planning::Build>& builds,
                     const std::vector<std::string>& releases) {
  for (std::size_t i = 0; i < builds.size(); ++i)
    for (std::size_t other = 0; other < i; ++other)
      if (builds[i].torch == builds[other].torch)
        throw ConfigError(fmt::format("{} {}: it is PyTorch {}, which {} names already",
                                      kTorchOption, releases[i], builds[i].torch, releases[other]));
}

// What programs import: the environment's, where it is of that release.
void give_release(World& world, const std::string& release, const BuildOptions& options,
                  const launch::TorchFound& environment, planning::Build& build) {
  if (environment.torch && options.requirements.empty() && release != launch::kNewest &&
      planning::is_start_of(release, environment.torch->version)) {
    build.torch = environment.torch->version;
  } else if (!options.installs) {
    build.torch = release;
  } else {
    if (environment.python.empty())
      throw ConfigError(
          fmt::format("{} {}: there is no python3 or python on PATH to install it; name yours in "
                      "PEAKBENCH_PYTHON",
                      kTorchOption, release));
    const auto found =
        release_installed(world, {release, environment.python, options.requirements});
    build.torch = found.torch.version;
    build.python_path = found.packages.string();
    if (const char* before = std::getenv("PYTHONPATH"); before != nullptr && *before != '\0')
      build.python_path += std::string(":") + before;
  }
  build.torch = launch::release_of(build.torch);
}

std::vector<planning::Build> of_releases(World& world, const std::vector<std::string>& releases,
                                         const planning::Request& request,
                                         const BuildOptions& options) {
  std::vector<planning::Build> builds;
  for (const auto& release : releases) {
    const auto worker = worker_for(world, {release, kTorchOption});
    auto& build = builds.emplace_back(build_with_plugins(world, worker, request.plugins, options));
    build.also = {release, libtorch_version(worker)};
  }
  name_by_release(builds);
  check_different(builds, releases);
  // Programs of a suite import the very release that the worker loads.
  if (request.programs.empty()) return builds;
  const auto environment = launch::torch_of_environment();
  for (auto& build : builds) {
    const auto name = build.torch;
    give_release(world, name, options, environment, build);
    build.torch = name;
  }
  return builds;
}

// DIR or DIR,plugins=DIR.
struct AskedBuild {
  fs::path folder;
  std::vector<std::string> plugins;
};

AskedBuild asked_build(const std::string& text) {
  static constexpr std::string_view kPlugins = ",plugins=";
  AskedBuild asked;
  auto rest = text;
  for (auto at = rest.rfind(kPlugins); at != std::string::npos; at = rest.rfind(kPlugins)) {
    asked.plugins.insert(asked.plugins.begin(), rest.substr(at + kPlugins.size()));
    rest.resize(at);
  }
  asked.folder = (fs::absolute(rest) / "").lexically_normal().parent_path();
  return asked;
}

// As many of a path's last names, joined.
std::string last_names(const fs::path& path, std::ptrdiff_t count) {
  std::vector<std::string> names;
  for (const auto& part : path.relative_path()) names.push_back(part.string());
  const auto shown = std::min(count, std::ssize(names));
  return fmt::format("{}", fmt::join(names.end() - shown, names.end(), "-"));
}

// As few of its last names as tell a folder from the others.
std::string short_name(const fs::path& path, const std::vector<AskedBuild>& asked) {
  const auto is_shared = [&](std::ptrdiff_t count) {
    return std::ranges::any_of(asked, [&](const AskedBuild& other) {
      return other.folder != path && last_names(other.folder, count) == last_names(path, count);
    });
  };
  std::ptrdiff_t count = 1;
  while (count < std::distance(path.begin(), path.end()) && is_shared(count)) ++count;
  return last_names(path, count);
}

// The same folder again is NAME-2, or the next number that no folder's name has.
std::vector<std::string> names_of(const std::vector<AskedBuild>& asked) {
  std::vector<std::string> taken, names;
  for (const auto& one : asked) taken.push_back(short_name(one.folder, asked));
  for (std::size_t i = 0; i < asked.size(); ++i) {
    auto name = taken[i];
    const bool is_again = std::ranges::count(names, name) != 0;
    for (int number = 2; is_again && std::ranges::count(taken, name) != 0; ++number)
      name = fmt::format("{}-{}", taken[i], number);
    if (is_again) taken.push_back(name);
    names.push_back(name);
  }
  return names;
}

std::vector<planning::Build> of_folders(World& world, const std::vector<std::string>& folders,
                                        const planning::Request& request,
                                        const BuildOptions& options) {
  std::vector<AskedBuild> asked;
  std::ranges::transform(folders, std::back_inserter(asked), asked_build);
  std::vector<planning::Build> builds;
  for (const auto& one : asked) {
    const auto worker = launch::worker_in_build(one.folder, launch::peakbench_version());
    auto plugins = request.plugins;
    for (const auto& folder : one.plugins) plugins.emplace_back(folder, "--build");
    builds.push_back(build_with_plugins(world, worker, plugins, options));
  }
  const auto names = names_of(asked);
  for (std::size_t i = 0; builds.size() > 1 && i < builds.size(); ++i) {
    builds[i].build = names[i];
    builds[i].also = {folders[i]};
  }
  return builds;
}

std::vector<planning::Build> of_programs(World& world, const planning::Request& request,
                                         const BuildOptions& options) {
  if (!request.lists.at(Axis::kBuild).empty())
    throw ConfigError("--build: a program has no worker; leave it out, or name a --model");
  const auto& releases = request.lists.at(Axis::kTorch);
  if (releases.empty()) return {build_of(planning::no_worker(), {}, options)};
  const auto environment = launch::torch_of_environment();
  std::vector<planning::Build> builds;
  for (const auto& release : releases) {
    auto& build = builds.emplace_back(build_of(planning::no_worker(), {}, options));
    give_release(world, release, options, environment, build);
  }
  check_different(builds, releases);
  if (builds.size() == 1) builds.front().torch.clear();
  return builds;
}

}  // namespace

std::vector<planning::Build> builds_for(World& world, const planning::Request& request,
                                        const BuildOptions& options) {
  if (!planning::needs_worker(request)) return of_programs(world, request, options);
  const auto& releases = request.lists.at(Axis::kTorch);
  const auto& folders = request.lists.at(Axis::kBuild);
  if (!releases.empty() && !folders.empty())
    throw ConfigError("--build and --torch cannot be combined: each build has its own PyTorch");
  auto builds = folders.empty() ? of_releases(world, releases, request, options)
                                : of_folders(world, folders, request, options);
  if (builds.size() == 1) {
    builds.front().also.push_back(builds.front().torch);
    builds.front().torch.clear();
  }
  if (!builds.empty()) return builds;
  return {build_with_plugins(world, worker_of(world), request.plugins, options)};
}

planning::DeviceHook any_card(const Worker& worker) { return launch::device_hook("", worker); }

}  // namespace peakbench::cli
