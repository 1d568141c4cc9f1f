#include "cli/workers_build.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "cli/rows.h"
#include "cli/safe_stream.h"
#include "cli/worker.h"
#include "errors/errors.h"
#include "launch/host.h"
#include "launch/interrupt.h"
#include "launch/together.h"
#include "text/printable.h"
#include "workers/build.h"

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

workers::TorchFound torch_to_build_for(const WorkersBuild& arguments) {
  auto found = workers::torch_of_environment();
  if (!arguments.torch_folder.empty()) {
    const auto python = found.python;
    found = workers::torch_found_in(fs::absolute(arguments.torch_folder).lexically_normal());
    found.python = python;
  }
  if (found.torch) return found;
  throw ConfigError(
      fmt::format("no worker can be built: {}{}", workers::about(found),
                  found.folder.empty()
                      ? ". Install one (pip install torch), or name its folder with --torch-dir"
                      : ""));
}

std::string sources_of(const World& world) {
  if (const char* named = std::getenv(workers::kSourceVariable); named != nullptr && *named != '\0')
    return fs::absolute(named).string();
  return world.places.source;
}

workers::BuildListener listener_of(BuildProgress& progress) {
  return {[&](const std::string& text) { progress.say(text); },
          [&](const std::string& line) { progress.show(line); },
          [] { return launch::interrupted(); }};
}

workers::BuildEnd worker_built(World& world, const workers::TorchFound& found,
                               bool quickstart = false) {
  const launch::InterruptScope interrupts;
  const workers::BuildOrder order{*found.torch,
                                  sources_of(world),
                                  found.python,
                                  world.places.workers,
                                  launch::peakbench_version(),
                                  jobs_for(launch::host_memory().available_bytes),
                                  quickstart};
  BuildProgress progress(world);
  return workers::build_worker(order, listener_of(progress));
}

constexpr const char* kNothingIsLeft = "Interrupted: nothing is left of the build.";

}  // namespace

workers::Release release_installed(World& world, const workers::ReleaseOrder& order) {
  const launch::InterruptScope interrupts;
  BuildProgress progress(world);
  auto release = workers::install_release(order, listener_of(progress));
  if (!release) throw Interrupted("Interrupted: nothing is left of the installation.");
  return *release;
}

std::string build_worker_for(World& world, const workers::TorchFound& found, bool quickstart) {
  const auto end = worker_built(world, found, quickstart);
  if (end.folder.empty()) throw Interrupted(kNothingIsLeft);
  return end.folder.string();
}

int build_worker(World& world, const WorkersBuild& arguments) {
  const auto end = worker_built(world, torch_to_build_for(arguments));
  if (end.folder.empty()) throw Interrupted(kNothingIsLeft);
  world.out << fmt::format("{}{}\n", end.was_there ? "It is there already: " : "",
                           printable(end.folder.string()));
  return kDone;
}

}  // namespace peakbench::cli
