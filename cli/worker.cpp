#include "cli/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/errors.h"
#include "base/file.h"
#include "base/printable.h"
#include "cli/option_values.h"
#include "cli/rows.h"
#include "cli/terminal.h"
#include "launch/interrupt.h"
#include "launch/machine.h"
#include "launch/worker_build.h"
#include "launch/worker_environment.h"
#include "records/device.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// One line that is drawn anew on a terminal; a line now and then elsewhere.
class BuildProgress {
 public:
  explicit BuildProgress(World& world) : world_(world) {}
  ~BuildProgress() { clear(); }
  BuildProgress(const BuildProgress&) = delete;
  BuildProgress& operator=(const BuildProgress&) = delete;

  void say(const std::string& sentence) {
    clear();
    world_.err << printable(sentence) << "\n" << std::flush;
  }

  void show(const std::string& line) {
    const auto now = Clock::now();
    const bool live = world_.screen.live;
    if (now - shown_at_ < (live ? kBetweenDrawings : kBetweenLines)) return;
    shown_at_ = now;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - began_).count();
    const auto text = fmt::format("{}  {}", duration(seconds), line);
    const auto width = static_cast<std::size_t>(std::max(world_.screen.width() - 1, 20));
    clear();
    world_.err << (live ? elided(text, width) : text + "\n") << std::flush;
    drawn_ = live;
  }

 private:
  void clear() {
    if (drawn_) write_codes(world_.err, "\r\x1b[K");
    world_.err << std::flush;
    drawn_ = false;
  }

  static constexpr Clock::duration kBetweenDrawings = std::chrono::milliseconds(200);
  static constexpr Clock::duration kBetweenLines = std::chrono::seconds(15);

  World& world_;
  Clock::time_point began_ = Clock::now(), shown_at_ = began_;
  bool drawn_ = false;
};

// A worker's sources take about 2 GiB of memory each, being compiled.
std::size_t jobs_for(std::int64_t available_bytes) {
  constexpr std::int64_t kEach = std::int64_t{2} << 30;
  return std::clamp<std::size_t>(static_cast<std::size_t>(available_bytes / kEach), 1,
                                 std::max<std::size_t>(launch::usable_cores(), 1));
}

launch::TorchFound torch_to_build_for(const std::string& torch_folder) {
  auto found = launch::torch_of_environment();
  if (!torch_folder.empty()) {
    const auto python = found.python;
    found = launch::torch_found_in(fs::absolute(torch_folder).lexically_normal());
    found.python = python;
  }
  if (found.torch) return found;
  throw ConfigError(
      fmt::format("no worker can be built: {}{}", launch::about(found),
                  found.folder.empty()
                      ? ". Install one (pip install torch), or name its folder with --torch-dir"
                      : ""));
}

std::string sources_of(const World& world) {
  if (const char* named = std::getenv(launch::kSourceVariable); named != nullptr && *named != '\0')
    return fs::absolute(named).string();
  return world.places.source;
}

launch::BuildListener listener_of(BuildProgress& progress) {
  return {[&](const std::string& text) { progress.say(text); },
          [&](const std::string& line) { progress.show(line); },
          [] { return launch::interrupted(); }};
}

// With its progress on `err`. Throws ConfigError: what is missing, or why the build failed;
// Interrupted. `quickstart`: as in launch::BuildOrder.
launch::BuildEnd worker_built(World& world, const launch::TorchFound& found,
                              bool quickstart = false) {
  const launch::InterruptScope interrupts;
  const launch::BuildOrder order{*found.torch,
                                 sources_of(world),
                                 found.python,
                                 world.places.workers,
                                 launch::peakbench_version(),
                                 jobs_for(launch::host_memory().available_bytes),
                                 quickstart};
  BuildProgress progress(world);
  auto end = launch::build_worker(order, listener_of(progress));
  if (end.folder.empty()) throw Interrupted("Interrupted: nothing is left of the build.");
  return end;
}

using launch::WorkerFolder;

bool takes_own(const World& world, const launch::Wish& wish) {
  return has_own_worker(world) &&
         (wish.version.empty() ||
          planning::is_start_of(wish.version, planning::own_stamp().libtorch_version));
}

// The worker beside the program, which finds its PyTorch by itself; as one among others.
const WorkerFolder& own_folder() {
  static const WorkerFolder kOwn = [] {
    WorkerFolder own;
    own.stamp = planning::own_stamp();
    return own;
  }();
  return kOwn;
}

// `missing` gives one where none fits.
planning::Worker choose_worker(
    const World& world, const launch::Wish& wish,
    const std::function<planning::Worker(const launch::TorchFound&, const std::string& why)>&
        missing) {
  if (takes_own(world, wish)) return own_worker(world);
  const auto environment = launch::torch_of_environment();
  const auto folders = launch::list_workers(world.places.workers, launch::peakbench_version());
  const auto all = candidates_of(world, folders, environment);
  if (const auto chosen = launch::choose(all, wish, environment))
    return chosen->worker == &own_folder() ? own_worker(world) : launch::worker_of(*chosen);
  return missing(environment, launch::why_none(all, wish, environment));
}

// Before minutes of compiling.
void check_torch(const pytorch::TorchInUse& torch, const records::Device& device) {
  planning::Worker worker;
  worker.torch = {torch.folder.string(), torch.version, torch.cuda};
  if (const auto why = launch::why_not_with(worker, device); !why.empty())
    throw ConfigError(fmt::format("device \"{}\": {}", device.id, why));
}

// `quickstart_on`: the device of the quick start; empty: a worker for everything.
const planning::Worker& chosen_or_compiled(World& world, const std::string& quickstart_on) {
  const auto compile = [&](const launch::TorchFound& environment, const std::string& why) {
    if (!wish_of(world).version.empty() || !environment.torch) throw ConfigError(why);
    const bool quickstart = !quickstart_on.empty();
    if (quickstart) check_torch(*environment.torch, records::device_from(quickstart_on));
    return launch::worker_in(worker_built(world, environment, quickstart).folder,
                             launch::peakbench_version());
  };
  if (!world.chosen) world.chosen = choose_worker(world, wish_of(world), compile);
  return *world.chosen;
}

}  // namespace

launch::Release release_installed(World& world, const launch::ReleaseOrder& order) {
  const launch::InterruptScope interrupts;
  BuildProgress progress(world);
  auto release = launch::install_release(order, listener_of(progress));
  if (!release) throw Interrupted("Interrupted: nothing is left of the installation.");
  return *release;
}

int build_worker(World& world, const std::string& torch_folder) {
  const auto end = worker_built(world, torch_to_build_for(torch_folder));
  world.out << fmt::format("{}{}\n", end.was_there ? "It is there already: " : "",
                           printable(end.folder.string()));
  return kDone;
}

CLI::Option* add_torch(CLI::App& command, World& world) {
  return add_value(command, kTorchOption, world.torch,
                   "PyTorch version to run with, from `peakbench workers`: 2.15, 2.15.0+cu132 "
                   "(default: $PEAKBENCH_TORCH, else the environment's)",
                   "VERSION");
}

launch::Wish wish_of(const World& world) {
  if (!world.torch.empty()) return {world.torch, kTorchOption};
  const char* value = std::getenv(kTorchVariable);
  return {value == nullptr ? "" : value, kTorchVariable};
}

// One whose worker was lost says so, and asks nobody else.
bool has_own_worker(const World& world) {
  return files::is_there(world.places.worker) || files::is_folder(world.places.plugins);
}

planning::Worker own_worker(const World& world) {
  planning::Worker worker;
  worker.program = world.places.worker;
  worker.plugins = world.places.plugins;
  return worker;
}

bool takes_own_worker(const World& world) { return takes_own(world, wish_of(world)); }

planning::Worker worker_for(World& world, const launch::Wish& wish) {
  return choose_worker(world, wish, [](const auto&, const std::string& why) -> planning::Worker {
    throw ConfigError(why);
  });
}

std::vector<launch::Candidate> candidates_of(const World& world,
                                             const std::vector<WorkerFolder>& folders,
                                             const launch::TorchFound& environment) {
  // In a wheel PREFIX is site-packages/peakbench, and PyTorch may lie beside that.
  const auto beside = fs::path(world.places.workers).parent_path().parent_path() / "torch";
  auto all = launch::candidates(folders, environment, [&](const WorkerFolder& one) {
    return std::vector<fs::path>{one.torch, beside};
  });
  pytorch::TorchInUse loaded;
  loaded.version = own_folder().stamp.libtorch_version;
  if (has_own_worker(world)) all.insert(all.begin(), {&own_folder(), loaded});
  return all;
}

const planning::Worker& worker_of(World& world) { return chosen_or_compiled(world, ""); }

void choose_worker_of_quickstart(World& world, const std::string& device) {
  chosen_or_compiled(world, device);
}

const planning::Worker& worker_at_hand(World& world) {
  if (!world.chosen) world.chosen = worker_for(world, wish_of(world));
  return *world.chosen;
}

planning::Worker worker_to_look_at(World& world) {
  try {
    return worker_at_hand(world);
  } catch (const ConfigError&) {
    auto any = any_worker(world);
    if (!wish_of(world).version.empty() || !files::is_folder(any.plugins)) throw;
    return any;
  }
}

std::vector<std::string> releases_with_workers(const World& world) {
  const auto folders = launch::list_workers(world.places.workers, launch::peakbench_version());
  const auto releases =
      launch::releases_of(candidates_of(world, folders, launch::torch_of_environment()));
  if (releases.size() < 2)
    throw ConfigError(fmt::format(
        "there is {} for {}: name releases with --torch; `peakbench workers build --torch-dir DIR` "
        "compiles a worker for another PyTorch",
        releases.empty() ? "no worker" : "one worker",
        releases.empty() ? "any PyTorch that is here" : "PyTorch " + releases.front()));
  return releases;
}

planning::Worker any_worker(const World& world) {
  if (has_own_worker(world)) return own_worker(world);
  const auto folders = launch::list_workers(world.places.workers, launch::peakbench_version());
  const auto usable =
      std::ranges::find_if(folders, [](const WorkerFolder& one) { return one.problem.empty(); });
  return usable == folders.end() ? own_worker(world) : launch::worker_of({&*usable, {}});
}

}  // namespace peakbench::cli
