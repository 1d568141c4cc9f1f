#include "cli/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>

#include "cli/workers_build.h"
#include "errors/errors.h"
#include "files/file.h"
#include "launch/host.h"
#include "launch/worker_torch.h"
#include "result/device.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

using workers::WorkerFolder;

bool takes_own(const World& world, const workers::Wish& wish) {
  return has_own_worker(world) &&
         (wish.version.empty() ||
          manifest::is_start_of(wish.version, manifest::own_stamp().libtorch_version));
}

// The worker beside the program, which finds its PyTorch by itself; as one among others.
WorkerFolder own_folder() {
  WorkerFolder own;
  own.stamp = manifest::own_stamp();
  return own;
}
std::vector<workers::Candidate> with_own(const World& world, const WorkerFolder& own,
                                         std::vector<workers::Candidate> all) {
  pytorch::TorchInUse loaded;
  loaded.version = own.stamp.libtorch_version;
  if (has_own_worker(world)) all.insert(all.begin(), {&own, loaded});
  return all;
}

// `missing` gives one where none fits.
manifest::Worker choose_worker(
    const World& world, const workers::Wish& wish,
    const std::function<manifest::Worker(const workers::TorchFound&, const std::string& why)>&
        missing) {
  if (takes_own(world, wish)) return own_worker(world);
  const auto environment = workers::torch_of_environment();
  const auto own = own_folder();
  const auto folders = workers::list_workers(world.places.workers, launch::peakbench_version());
  const auto all = with_own(world, own, candidates_of(world, folders, environment));
  if (const auto chosen = workers::choose(all, wish, environment))
    return chosen->worker == &own ? own_worker(world) : workers::worker_of(*chosen);
  return missing(environment, workers::why_none(all, wish, environment));
}

// Before minutes of compiling.
void check_torch(const pytorch::TorchInUse& torch, const result::Device& device) {
  manifest::Worker worker;
  worker.torch = {torch.folder.string(), torch.version, torch.cuda};
  if (const auto why = launch::why_not_with(worker, device); !why.empty())
    throw ConfigError(fmt::format("device \"{}\": {}", device.id, why));
}

// `quickstart_on`: the device of the quick start; empty: a worker for everything.
const manifest::Worker& chosen_or_compiled(World& world, const std::string& quickstart_on) {
  const auto compile = [&](const workers::TorchFound& environment, const std::string& why) {
    if (!wish_of(world).version.empty() || !environment.torch) throw ConfigError(why);
    const bool quickstart = !quickstart_on.empty();
    if (quickstart) check_torch(*environment.torch, result::device_from(quickstart_on));
    return workers::worker_in(build_worker_for(world, environment, quickstart),
                              launch::peakbench_version());
  };
  if (!world.chosen) world.chosen = choose_worker(world, wish_of(world), compile);
  return *world.chosen;
}

}  // namespace

CLI::Option* add_torch(CLI::App& command, World& world) {
  return command
      .add_option(kTorchOption, world.torch,
                  "PyTorch version to run with, from `peakbench workers`: 2.15, 2.15.0+cu132 "
                  "(default: $PEAKBENCH_TORCH, else the environment's)")
      ->type_name("VERSION");
}

workers::Wish wish_of(const World& world) {
  if (!world.torch.empty()) return {world.torch, kTorchOption};
  const char* value = std::getenv(kTorchVariable);
  return {value == nullptr ? "" : value, kTorchVariable};
}

// One whose worker was lost says so, and asks nobody else.
bool has_own_worker(const World& world) {
  return files::is_there(world.places.worker) || files::is_folder(world.places.plugins);
}

manifest::Worker own_worker(const World& world) {
  manifest::Worker worker;
  worker.program = world.places.worker;
  worker.plugins = world.places.plugins;
  return worker;
}

bool takes_own_worker(const World& world) { return takes_own(world, wish_of(world)); }

manifest::Worker worker_for(World& world, const workers::Wish& wish) {
  return choose_worker(world, wish, [](const auto&, const std::string& why) -> manifest::Worker {
    throw ConfigError(why);
  });
}

std::vector<workers::Candidate> candidates_of(const World& world,
                                              const std::vector<WorkerFolder>& folders,
                                              const workers::TorchFound& environment) {
  // In a wheel PREFIX is site-packages/peakbench, and PyTorch may lie beside that.
  const auto beside = fs::path(world.places.workers).parent_path().parent_path() / "torch";
  return workers::candidates(folders, environment, [&](const WorkerFolder& one) {
    return std::vector<fs::path>{one.torch, beside};
  });
}

std::string why_no_worker(const World& world, std::vector<workers::Candidate> all,
                          const workers::TorchFound& environment) {
  const auto own = own_folder();
  return workers::why_none(with_own(world, own, std::move(all)), wish_of(world), environment);
}

const manifest::Worker& worker_of(World& world) { return chosen_or_compiled(world, ""); }

void choose_worker_of_quickstart(World& world, const std::string& device) {
  chosen_or_compiled(world, device);
}

const manifest::Worker& worker_at_hand(World& world) {
  if (!world.chosen) world.chosen = worker_for(world, wish_of(world));
  return *world.chosen;
}

manifest::Worker worker_to_look_at(World& world) {
  try {
    return worker_at_hand(world);
  } catch (const ConfigError&) {
    auto any = any_worker(world);
    if (!wish_of(world).version.empty() || !files::is_folder(any.plugins)) throw;
    return any;
  }
}

std::vector<std::string> releases_with_workers(const World& world) {
  const auto folders = workers::list_workers(world.places.workers, launch::peakbench_version());
  const auto own = own_folder();
  const auto releases = workers::releases_of(
      with_own(world, own, candidates_of(world, folders, workers::torch_of_environment())));
  if (releases.size() < 2)
    throw ConfigError(fmt::format(
        "there is {} for {}: name releases with --torch; `peakbench workers build --torch-dir DIR` "
        "compiles a worker for another PyTorch",
        releases.empty() ? "no worker" : "one worker",
        releases.empty() ? "any PyTorch that is here" : "PyTorch " + releases.front()));
  return releases;
}

manifest::Worker any_worker(const World& world) {
  if (has_own_worker(world)) return own_worker(world);
  const auto folders = workers::list_workers(world.places.workers, launch::peakbench_version());
  const auto usable =
      std::ranges::find_if(folders, [](const WorkerFolder& one) { return one.problem.empty(); });
  return usable == folders.end() ? own_worker(world) : workers::worker_of({&*usable, {}});
}

}  // namespace peakbench::cli
