// `peakbench doctor`: is everything there that a run needs, and if not, what to do.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/devices.h"
#include "host/card.h"
#include "launch/host.h"
#include "launch/outcome.h"
#include "launch/process.h"
#include "reports/format.h"
#include "result/errors.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFooter = R"(Examples:
  peakbench doctor
  peakbench doctor --json
Exit codes: 0 everything is there; 2 something is missing: each problem says how to fix it.)";

constexpr std::int64_t kLittleMemory = std::int64_t{4} << 30;
constexpr std::int64_t kLittleDisk = std::int64_t{2} << 30;

struct Finding {
  std::string subject;
  bool good = true;
  std::string found;  // what is there
  std::string fix;    // what to do, where something is wrong
};

Finding check_program() {
  const auto stamp = manifest::own_stamp();
  return {"peakbench", true,
          fmt::format("{} (commit {}), SDK revision {}, for LibTorch {} ({}, CUDA {})",
                      launch::peakbench_version(), launch::peakbench_commit(), stamp.sdk_revision,
                      stamp.libtorch_version, stamp.libtorch_git_version, stamp.libtorch_cuda),
          ""};
}

// A file of its own in the temporary folder, gone at the end.
class TemporaryLog {
 public:
  TemporaryLog() : path_(fs::temp_directory_path() / "peakbench-doctor-XXXXXX") {
    const int fd = mkstemp(path_.data());
    if (fd >= 0) close(fd);
  }
  ~TemporaryLog() { unlink(path_.c_str()); }
  TemporaryLog(const TemporaryLog&) = delete;
  TemporaryLog& operator=(const TemporaryLog&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Without a job the worker says how it is used: enough to see that LibTorch is found and loads.
Finding check_worker(const Places& places) {
  const std::string build = "build it: ninja -C build/release peakbench-worker";
  if (!fs::exists(places.worker)) return {"worker", false, "no " + places.worker, build};
  const TemporaryLog log;
  launch::ProcessSpec spec;
  spec.arguments = {places.worker};
  spec.log_path = log.path();
  spec.timeout = std::chrono::seconds(60);
  const auto end = launch::run_process(
      spec, [](const std::string&) {}, [] { return false; });
  std::ifstream file(log.path());
  const std::string said((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (end.start_error.empty() && said.rfind("usage: peakbench-worker", 0) == 0)
    return {
        "worker", true,
        fmt::format("{} starts and finds LibTorch ({} ms)", places.worker, end.wall_ns / 1'000'000),
        ""};
  const auto why = end.start_error.empty() ? launch::log_tail(log.path()) : end.start_error;
  return {"worker", false,
          fmt::format("{} does not start: {}", places.worker, launch::printable(why)),
          "if a library is missing, LibTorch was moved or deleted: run ci/libtorch, then configure "
          "and build again"};
}

void check_plugins(const Places& places, const std::vector<std::string>& folders,
                   std::vector<Finding>& findings) {
  auto all = folders;
  if (folders.empty() || fs::is_directory(places.plugins)) all.insert(all.begin(), places.plugins);
  try {
    const auto found = manifest::discover(all);
    std::size_t models = 0, strategies = 0;
    for (const auto& plugin : found.plugins)
      (plugin.kind == manifest::Kind::kModel ? models : strategies) += plugin.entries.size();
    const bool enough = models > 0 && strategies > 0;
    findings.push_back({"plugins", enough,
                        fmt::format("{} models and {} strategies from {} plugins in {}", models,
                                    strategies, found.plugins.size(), fmt::join(all, ", ")),
                        "build them: ninja -C build/release"});
    for (const auto& problem : found.problems)
      findings.push_back({"plugin", false, problem,
                          "build it with this Peakbench and its LibTorch, or remove it"});
  } catch (const ConfigError& error) {
    findings.push_back({"plugins", false, error.what(), "build them: ninja -C build/release"});
  }
}

Finding check_templates(const Places& places) {
  return {"templates", fs::is_directory(places.templates), places.templates,
          "reports need the folder templates/ of the sources there: configure and build again"};
}

Finding check_memory() {
  const auto memory = launch::host_memory();
  return {
      "memory", memory.available_bytes >= kLittleMemory,
      fmt::format("{} GiB available of {} GiB; a worker's tensors may take {} GiB",
                  reports::gib(memory.available_bytes), reports::gib(memory.total_bytes),
                  reports::gib(launch::memory_budget(0, memory))),
      "close other programs, or choose smaller models: cases that do not fit end out_of_memory"};
}

Finding check_disk() {
  const auto free = launch::free_disk_bytes(".");
  return {"disk", free >= kLittleDisk,
          fmt::format("{} GiB free in {}", reports::gib(free), fs::current_path().string()),
          "free some space, or write results elsewhere with --out: checking a strategy's promise "
          "needs 4 bytes a parameter for a while"};
}

Finding check_devices() {
  std::vector<std::string> devices;
  for (const auto& device : devices_of_this_machine())
    devices.push_back(device.id + ": " + device.title);
  return {"devices", true, fmt::format("{}", fmt::join(devices, "; ")), ""};
}

Finding check_driver() {
  const auto cuda = manifest::own_stamp().libtorch_cuda;
  const auto driver = driver_of_this_machine(cuda);
  if (driver.version.empty())
    return {"driver", true, "none of NVIDIA's: devices are the CPU and emulated cards", ""};
  return {"driver", driver.problem.empty(), fmt::format("NVIDIA {}", driver.version),
          driver.problem};
}

Finding check_emulator() {
  try {
    const auto installation = emulator::find_installation();
    const auto cards = emulator::list_cards(installation);
    const auto served =
        std::count_if(cards.begin(), cards.end(), [](const auto& card) { return card.served; });
    return {"emulator", true,
            fmt::format("{} cards; {} libraries stand in for those of LibTorch {}", served,
                        installation.libraries.size(), installation.libtorch_version),
            ""};
  } catch (const ConfigError& error) {
    return {"emulator", false, error.what(),
            "build it: ninja -C build/release peakbench_stand_ins"};
  }
}

Json as_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const auto& finding : findings)
    json.push_back({{"subject", finding.subject},
                    {"good", finding.good},
                    {"found", finding.found},
                    {"fix", finding.good ? "" : finding.fix}});
  return json;
}

int examine(World& world, bool json, const std::vector<std::string>& folders) {
  std::vector<Finding> findings{check_program(), check_worker(world.places)};
  check_plugins(world.places, folders, findings);
  for (const auto& finding : {check_templates(world.places), check_devices(), check_driver(),
                              check_emulator(), check_memory(), check_disk()})
    findings.push_back(finding);
  bool good = true;
  for (const auto& finding : findings) good &= finding.good;
  if (json) {
    world.out << as_json(findings).dump(2) << "\n";
  } else {
    for (const auto& finding : findings) {
      world.out << fmt::format("{:<8} {:<10} {}\n", finding.good ? "ok" : "PROBLEM",
                               finding.subject, finding.found);
      if (!finding.good) world.out << fmt::format("{:<8} {:<10} {}\n", "", "", finding.fix);
    }
  }
  return good ? kDone : kUnusableInput;
}

}  // namespace

Command add_doctor(CLI::App& app, World& world) {
  auto* command = app.add_subcommand("doctor", "Say what is wrong with this installation");
  command->footer(kFooter);
  const auto json = std::make_shared<bool>(false);
  const auto folders = std::make_shared<std::vector<std::string>>();
  command->add_flag("--json", *json, "As JSON");
  command->add_option("--plugins", *folders, "Folder with more plugins")
      ->allow_extra_args(false)
      ->type_name("DIR");
  return [&world, json, folders] { return examine(world, *json, *folders); };
}

}  // namespace peakbench::cli
