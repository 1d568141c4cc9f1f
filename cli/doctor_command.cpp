#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/columns.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/plugins.h"
#include "cli/program_words.h"
#include "cli/worker.h"
#include "emulator/host/card.h"
#include "host/command.h"
#include "launch/devices.h"
#include "launch/machine.h"
#include "launch/worker_choice.h"
#include "launch/worker_environment.h"
#include "launch/worker_process.h"
#include "programs/python_functions.h"
#include "records/device.h"
#include "reports/render/format.h"
#include "reports/run/report.h"

namespace peakbench::cli {
namespace {

struct DoctorArguments {
  std::vector<std::string> plugins;
  bool json = false, context = false, workspaces = false;
  int device = 0;                    // of --context, as PyTorch counts GPUs
  std::string to;                    // a card file to add what is measured to; empty: none
  std::vector<std::string> program;  // of --workspaces
};

// `peakbench doctor --workspaces`: `python3 -m peakbench.workspaces`, in the place of this process,
// as the program may read what is typed.
int measure_workspaces(const DoctorArguments& arguments) {
  if (arguments.to.empty())
    throw ConfigError("doctor --workspaces: name the card file to add them to: --to FILE");
  if (arguments.program.empty())
    throw ConfigError("doctor --workspaces: name the program to run: -- COMMAND");
  const auto interpreter = interpreter_of_environment();
  auto words = process::python_module(interpreter, "peakbench.workspaces");
  words.insert(words.end(), {"--to", arguments.to});
  if (arguments.json) words.emplace_back("--json");
  words.emplace_back("--");
  const auto program = runnable(arguments.program);
  words.insert(words.end(), program.begin(), program.end());
  const auto why = process::become(words);
  throw ConfigError(fmt::format("{} cannot be started: {}", interpreter, why));
}

// `peakbench doctor --context`: the memory of a real GPU's CUDA context. Runs `python3 -m
// peakbench.context` and prints its result. Throws ConfigError if there is no Python, or it fails
// without a sentence of ours.
int measure_context(World& world, const DoctorArguments& arguments) {
  const auto interpreter = interpreter_of_environment();
  auto words = process::python_module(interpreter, "peakbench.context");
  words.insert(words.end(), {"--device", std::to_string(arguments.device)});
  if (!arguments.to.empty()) words.insert(words.end(), {"--to", arguments.to});
  if (arguments.json) words.emplace_back("--json");
  constexpr std::chrono::minutes kPatience{10};  // it imports PyTorch, and trains
  const auto said = process::ask_command({.arguments = words, .patience = kPatience});
  if (said.ok()) {
    world.out << said.out;
    return kDone;
  }
  // One sentence of ours, or of Python before it came so far.
  if (said.exit_code == kUnusableInput && said.err.starts_with("peakbench: ")) {
    world.err << said.err;
    return kUnusableInput;
  }
  throw ConfigError(programs::why_no_answer(said, interpreter, "peakbench.context"));
}

// `peakbench doctor`: is everything there that a run needs, and if not, what to do.

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using launch::DeviceFound;

constexpr const char* kDoctorFooter = R"(Examples:
  peakbench doctor
  peakbench doctor --json
  peakbench doctor --context --to my-a100.json
  peakbench doctor --workspaces --to my-a100.json -- python3 train.py
Besides what PyTorch reserves, a process takes a CUDA context of a GPU's memory, which grows with the
kernels that it loads. --context measures the context: the figure of nvidia-smi less what PyTorch reserved,
with one tensor and in a small training. It needs a real GPU that nothing else uses, and PyTorch in the
Python of $PEAKBENCH_PYTHON, else of python3 on PATH. --to FILE adds the figures to a card file, and
`peakbench emulate --card FILE` then includes them.
cuDNN chooses how much scratch memory a convolution takes. --workspaces runs a program once on a real GPU,
and adds what cuDNN took to a card file: emulated programs with the same convolutions then take the same.
Exit codes: 0 no problem was found, or the context was measured; with --workspaces the program's; 2 a problem was found: each one has its fix.)";

constexpr std::int64_t kLittleMemory = std::int64_t{4} << 30;
constexpr std::int64_t kLittleDisk = std::int64_t{2} << 30;

constexpr const char* kBuild =
    "build it (ninja -C build/release), and install all of it: cmake --install build/release "
    "--prefix DIR";

struct Diagnosis {
  std::string subject;
  bool good = true;
  std::string found;     // what is there
  std::string fix = {};  // what to do, where something is wrong
};

Diagnosis check_program(const std::optional<planning::Worker>& worker) {
  auto found = fmt::format("{} (commit {}), SDK revision {}", launch::peakbench_version(),
                           launch::peakbench_commit(), planning::kSdkRevision);
  if (worker)
    found += fmt::format(
        ", for LibTorch {} ({}, {})", libtorch_version(*worker), worker->stamp.libtorch_git_version,
        libtorch_cuda(*worker) == planning::kNoCuda ? "without CUDA"
                                                    : "CUDA " + libtorch_cuda(*worker));
  return {"peakbench", true, found};
}

// Nullopt: there is none, which is found.
std::optional<planning::Worker> find_worker(World& world, std::vector<Diagnosis>& diagnoses) {
  try {
    return worker_at_hand(world);
  } catch (const ConfigError& error) {
    diagnoses.push_back(
        {"worker", false, error.what(), "`peakbench workers` shows those there are"});
    return std::nullopt;
  }
}

// Without a job the worker says how it is used: enough to see that LibTorch is found and loads.
Diagnosis check_worker(const planning::Worker& worker) {
  if (!files::is_there(worker.program)) return {"worker", false, "no " + worker.program, kBuild};
  const auto said = launch::ask_worker(
      worker.program, {}, launch::environment_for(records::device_from("cpu"), worker));
  if (said.text.rfind("usage: peakbench-worker", 0) == 0)
    return {"worker", true,
            fmt::format("{} starts and finds LibTorch{} ({} ms)", worker.program,
                        worker.torch.folder.empty() ? "" : " in " + worker.torch.folder,
                        said.wall_ns / 1'000'000)};
  return {"worker", false, fmt::format("{} does not start: {}", worker.program, said.end),
          "if a library is missing, LibTorch was moved or deleted: run ci/libtorch, then configure "
          "and build again"};
}

// The worker makes a tensor on the device: its module, LibTorch's half for it and what is below (a
// driver, or the stand-ins) are there and fit each other.
Diagnosis try_device(const planning::Worker& worker, const std::string& id) {
  const auto device = records::device_from(id);
  if (const auto why = launch::why_not_with(worker, device); !why.empty())
    return {device.module, true, why};
  const auto said = launch::ask_worker(worker.program, {"--try-device", id},
                                       launch::environment_for(device, worker));
  if (said.text.find(id + " works") != std::string::npos)
    return {
        device.module, true,
        fmt::format("{}: the worker makes a tensor there ({} ms)", id, said.wall_ns / 1'000'000)};
  return {
      device.module, false, fmt::format("{}: the worker cannot use it: {}", id, said.end),
      device.is_card ? fmt::format("{}; cases on other devices can run", device.needs) : kBuild};
}

// The first card that is emulated, and the first real one.
void check_cards(const planning::Worker& worker, std::vector<Diagnosis>& diagnoses) {
  const auto try_first = [&](const std::vector<DeviceFound>& found, auto is_wanted) {
    const auto first = std::ranges::find_if(found, is_wanted);
    if (first != found.end()) diagnoses.push_back(try_device(worker, first->id));
  };
  try_first(launch::emulated_devices(), [](const DeviceFound& one) { return one.refused.empty(); });
  try_first(launch::devices_of_this_machine(),
            [](const DeviceFound& one) { return records::device_from(one.id).is_card; });
}

void check_plugins(const planning::Worker& worker, const std::vector<std::string>& typed,
                   std::vector<Diagnosis>& diagnoses) {
  try {
    const auto all = with_own(worker, named_folders(typed));
    const auto found = planning::discover(all, worker.stamp);
    std::size_t models = 0, strategies = 0;
    for (const auto& plugin : found.plugins)
      (plugin.kind == planning::Kind::kModel ? models : strategies) += plugin.entries.size();
    const bool enough = models > 0 && strategies > 0;
    diagnoses.push_back({"plugins", enough,
                         fmt::format("{} models and {} strategies from {} plugins in {}", models,
                                     strategies, found.plugins.size(), in_words(all)),
                         kBuild});
    for (const auto& problem : found.problems)
      diagnoses.push_back({"plugin", false, problem,
                           "build it with this Peakbench and its LibTorch, or remove it"});
  } catch (const ConfigError& error) {
    diagnoses.push_back({"plugins", false, error.what(), kBuild});
  }
}

// Renders the report of a run without a case: every template is there, and names no field that
// there is not.
Diagnosis check_templates(const Places& places) {
  reports::ReportOptions options;
  options.builtin_template_directory = places.templates;
  try {
    reports::render({records::Run{}}, {""}, options);
  } catch (const std::exception& error) {
    return {"templates", false, error.what(), kBuild};
  }
  const bool charts = reports::charts_view(places.templates).has_value();
  return {"templates", true,
          places.templates + (charts ? "" : " (without D3: reports have no interactive chart)")};
}

Diagnosis check_memory() {
  const auto memory = launch::host_memory();
  return {
      "memory", memory.available_bytes >= kLittleMemory,
      fmt::format("{} GiB available of {} GiB; a worker's tensors may take {} GiB",
                  reports::gib(memory.available_bytes), reports::gib(memory.total_bytes),
                  reports::gib(launch::memory_budget(0, memory))),
      "close other programs, or choose smaller models: cases that do not fit end out_of_memory"};
}

Diagnosis check_disk() {
  const auto free = launch::free_disk_bytes(".");
  std::error_code error;
  const auto here = fs::current_path(error);
  return {"disk", free >= kLittleDisk,
          fmt::format("{} GiB free in {}", reports::gib(free), error ? "." : here.string()),
          "free some space, or write results elsewhere with --out: checking a strategy's promise "
          "needs 4 bytes a parameter for a while"};
}

Diagnosis check_devices() {
  std::vector<std::string> texts;
  for (const auto& device : launch::devices_of_this_machine())
    texts.push_back(device.id + ": " + device.title);
  return {"devices", true, fmt::format("{}", fmt::join(texts, "; "))};
}

Diagnosis check_driver(const std::optional<planning::Worker>& worker) {
  const auto driver = launch::driver_of_this_machine(worker ? libtorch_cuda(*worker) : "");
  if (driver.version.empty())
    return {"driver", true, "none of NVIDIA's: devices are the CPU and emulated cards"};
  return {"driver", driver.problem.empty(), fmt::format("NVIDIA {}", driver.version),
          driver.problem};
}

Diagnosis check_emulator() {
  try {
    const auto installation = emulator::find_installation();
    const auto cards = emulator::list_cards(installation);
    const auto served =
        std::count_if(cards.begin(), cards.end(), [](const auto& card) { return card.served; });
    return {"emulator", true,
            fmt::format("{} cards; {} stub libraries for LibTorch {}, in {}", served,
                        installation.libraries.size(), installation.libtorch_version,
                        installation.folder.lexically_normal().string())};
  } catch (const ConfigError& error) {
    return {"emulator", false, error.what(), kBuild};
  }
}

Json as_json(const std::vector<Diagnosis>& diagnoses) {
  Json json = Json::array();
  for (const auto& diagnosis : diagnoses)
    json.push_back({{"subject", diagnosis.subject},
                    {"good", diagnosis.good},
                    {"found", diagnosis.found},
                    {"fix", diagnosis.good ? "" : diagnosis.fix}});
  return json;
}

std::vector<Diagnosis> find_all(World& world, const std::vector<std::string>& folders) {
  std::vector<Diagnosis> diagnoses;
  const auto worker = find_worker(world, diagnoses);
  diagnoses.insert(diagnoses.begin(), check_program(worker));
  if (worker) diagnoses.push_back(check_worker(*worker));
  const bool starts = diagnoses.back().good;
  if (worker) check_plugins(*worker, folders, diagnoses);
  diagnoses.insert(diagnoses.end(), {check_templates(world.places), check_devices(),
                                     check_driver(worker), check_emulator()});
  if (worker && starts) check_cards(*worker, diagnoses);
  diagnoses.insert(diagnoses.end(), {check_memory(), check_disk()});
  return diagnoses;
}

int examine(World& world, const DoctorArguments& arguments) {
  const auto diagnoses = find_all(world, arguments.plugins);
  const auto line = [&](const char* state, const std::string& subject, const std::string& words) {
    world.out << hanging(fmt::format("{:<8} {:<10} ", state, subject), printable(words),
                         world.out_width);
  };
  if (arguments.json) {
    world.out << json_text(as_json(diagnoses));
  } else {
    for (const auto& diagnosis : diagnoses) {
      line(diagnosis.good ? "ok" : "PROBLEM", diagnosis.subject, diagnosis.found);
      if (!diagnosis.good) line("", "", diagnosis.fix);
    }
  }
  return std::ranges::all_of(diagnoses, &Diagnosis::good) ? kDone : kUnusableInput;
}

}  // namespace

Command add_doctor(CLI::App& app, World& world) {
  auto* command = subcommand(app, "doctor", "Check this installation and show how to fix problems",
                             kDoctorFooter);
  const auto arguments = std::make_shared<DoctorArguments>();
  command->add_flag("--json", arguments->json, "Print JSON");
  auto* more =
      add_repeated(*command, "--plugins", arguments->plugins, "Folder with more plugins", "DIR");
  auto* torch = add_torch(*command, world);
  auto* flag = command->add_flag("--context", arguments->context,
                                 "Measure the CUDA context of a real GPU instead");
  flag->excludes(more)->excludes(torch);
  add_value(*command, "--device", arguments->device, "With --context: index of the GPU (default 0)",
            "INDEX")
      ->needs(flag);
  add_value(*command, "--to", arguments->to,
            "With --context and --workspaces: add what is measured to this card file", "FILE");
  auto* workspaces = command->add_flag(
      "--workspaces", arguments->workspaces,
      "Measure cuDNN's workspaces of a program's convolutions on a real GPU instead");
  workspaces->excludes(more)->excludes(torch)->excludes(flag);
  add_program(*command, arguments->program, "program", "With --workspaces: the program, after --")
      ->needs(workspaces);
  return [&world, arguments] {
    if (arguments->workspaces) return measure_workspaces(*arguments);
    if (!arguments->to.empty() && !arguments->context)
      throw ConfigError("--to says where to add what --context or --workspaces measures");
    return arguments->context ? measure_context(world, *arguments) : examine(world, *arguments);
  };
}

}  // namespace peakbench::cli
