// `peakbench workers`: which PyTorchs there are workers for, and making more.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/columns.h"
#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/option_values.h"
#include "cli/worker.h"
#include "launch/machine.h"
#include "launch/worker_folder.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using launch::Candidate;
using launch::TorchFound;
using launch::WorkerFolder;

constexpr const char* kWorkersFooter = R"(Examples:
  peakbench workers
  peakbench workers build
  peakbench workers build --torch-dir venv/lib/python3.12/site-packages/torch
  peakbench workers remove 2.8.0
A worker is the program that runs cases, built for one build of PyTorch. The worker for the environment's
PyTorch, or for the one named by --torch or $PEAKBENCH_TORCH, is chosen automatically.
Exit codes: 0 done; 2 no worker of that version exists, or it cannot be built; 130 interrupted, nothing is
left of the build.)";

std::int64_t size_of(const fs::path& folder) {
  std::int64_t bytes = 0;
  std::error_code none;
  for (auto entry = fs::recursive_directory_iterator(folder, none);
       !none && entry != fs::recursive_directory_iterator(); entry.increment(none)) {
    std::error_code unknown;
    if (entry->is_regular_file(unknown) && !entry->is_symlink(unknown))
      bytes += static_cast<std::int64_t>(entry->file_size(unknown));
  }
  return bytes;
}

// One worker, as it is listed.
struct Row {
  std::string folder, version;
  std::string torch;  // the folder that it would load; empty: it finds its own, or there is none
  std::int64_t size_bytes = 0;
  bool serves_environment = false, chosen = false, can_be_removed = false;
  std::string problem;
};

// Empty: none; `run` says why.
std::string chosen_program(const World& world, std::vector<Candidate> all,
                           const TorchFound& environment) {
  if (takes_own_worker(world)) return own_worker(world).program;
  std::erase_if(all, [](const Candidate& one) { return one.worker->folder.empty(); });
  const auto chosen = launch::choose(all, wish_of(world), environment);
  return chosen ? launch::worker_of(*chosen).program : "";
}

Row row_of(const WorkerFolder& worker, const std::vector<Candidate>& all,
           const TorchFound& environment) {
  Row row;
  row.folder = worker.folder.string();
  row.version = worker.stamp.libtorch_version;
  row.size_bytes = size_of(worker.folder);
  row.problem = worker.problem;
  row.can_be_removed = worker.in_cache;
  for (const auto& one : all)
    if (one.worker == &worker && one.torch) row.torch = one.torch->folder.string();
  if (row.problem.empty() && row.torch.empty())
    row.problem = fmt::format("there is no PyTorch {} for it to load", row.version);
  row.serves_environment = worker.problem.empty() && environment.torch &&
                           launch::serves(worker.stamp, *environment.torch);
  return row;
}

std::vector<Row> rows_of(const World& world, const std::vector<WorkerFolder>& folders,
                         const std::vector<Candidate>& all, const TorchFound& environment) {
  std::vector<Row> rows;
  if (has_own_worker(world)) {
    const auto own = own_worker(world);
    Row row;
    row.folder = fs::path(own.program).parent_path().parent_path().string();
    row.version = own.stamp.libtorch_version;
    row.serves_environment = environment.torch && launch::serves(own.stamp, *environment.torch);
    if (!files::is_there(own.program)) row.problem = "bin/peakbench-worker is missing";
    rows.push_back(row);
  }
  for (const auto& folder : folders) rows.push_back(row_of(folder, all, environment));
  const auto chosen = chosen_program(world, all, environment);
  for (auto& row : rows)
    row.chosen = !chosen.empty() && (fs::path(row.folder) / "bin/peakbench-worker") == chosen;
  return rows;
}

std::string text_of(const Row& row) {
  auto text = fmt::format("{} {}\n", row.chosen ? "*" : " ", printable(row.folder));
  if (!row.version.empty()) text += fmt::format("    PyTorch {}", printable(row.version));
  if (row.size_bytes > 0) text += fmt::format(", {} MiB", row.size_bytes >> 20);
  if (row.serves_environment) text += ", serves the environment's";
  if (!row.torch.empty()) text += fmt::format("\n    loads {}", printable(row.torch));
  text += row.version.empty() ? "" : "\n";
  // A path in it is copied from here, and stays whole.
  if (!row.problem.empty()) text += fmt::format("    not used: {}\n", printable(row.problem));
  return text;
}

Json json_of(const Row& row) {
  return {{"folder", row.folder},
          {"torch", row.version},
          {"loads", row.torch},
          {"size_bytes", row.size_bytes},
          {"serves_environment", row.serves_environment},
          {"chosen", row.chosen},
          {"can_be_removed", row.can_be_removed},
          {"problem", row.problem}};
}

std::string environment_text(const TorchFound& environment) {
  if (environment.torch)
    return fmt::format("The environment's PyTorch is {} in {}.", environment.torch->version,
                       environment.torch->folder.string());
  return fmt::format("No worker is chosen by the environment: {}.", launch::about(environment));
}

int list_workers(World& world, bool json) {
  const auto environment = launch::torch_of_environment();
  const auto folders = launch::list_workers(world.places.workers, launch::peakbench_version());
  const auto all = candidates_of(world, folders, environment);
  const auto rows = rows_of(world, folders, all, environment);
  if (json) {
    Json array = Json::array();
    for (const auto& row : rows) array.push_back(json_of(row));
    world.out << json_text(array);
    return kDone;
  }
  for (const auto& row : rows) world.out << text_of(row);
  const bool none_as_wished =
      !wish_of(world).version.empty() && std::ranges::none_of(rows, &Row::chosen);
  const auto words =
      none_as_wished ? "No worker is chosen: " + launch::why_none(all, wish_of(world), environment)
                     : environment_text(environment);
  world.out << wrapped(printable(words), world.out_width);
  if (rows.empty())
    world.out << "There is no worker yet; `peakbench workers build` compiles one.\n";
  return kDone;
}

int remove(World& world, const std::string& version) {
  const auto all = launch::list_workers(world.places.workers, launch::peakbench_version());
  const auto& worker = launch::to_be_removed(all, version);
  launch::remove_worker(worker);
  world.out << fmt::format("Removed {}\n", printable(worker.folder.string()));
  return kDone;
}

}  // namespace

Command add_workers(CLI::App& app, World& world) {
  auto* command = subcommand(
      app, "workers", "List, build or remove workers, one per PyTorch version", kWorkersFooter);
  command->require_subcommand(0, 1);
  const auto json = std::make_shared<bool>(false);
  const auto version = std::make_shared<std::string>();
  const auto torch_folder = std::make_shared<std::string>();
  auto* list =
      command->add_subcommand("list", "List the workers, their PyTorch, and which one is chosen");
  auto* make = command->add_subcommand("build", "Compile a worker for the environment's PyTorch");
  add_value(*make, "--torch-dir", *torch_folder,
            "Folder `torch` of the PyTorch to build for (default: the environment's)", "DIR");
  auto* take_out = command->add_subcommand("remove", "Delete a worker that `workers build` made");
  add_value(*take_out, "version", *version,
            "PyTorch version of the worker, or its start: 2.8.0+cu128, 2.8", "VERSION")
      ->required();
  // `workers` alone is `workers list`.
  for (auto* one : {command, list}) {
    auto* as_json = one->add_flag("--json", *json, "Print JSON");
    auto* torch = add_torch(*one, world);
    if (one == command)
      for (auto* other : {make, take_out}) other->excludes(as_json)->excludes(torch);
  }
  return [&world, json, version, torch_folder, make, take_out] {
    if (make->parsed()) return build_worker(world, *torch_folder);
    if (take_out->parsed()) return remove(world, *version);
    return list_workers(world, *json);
  };
}

}  // namespace peakbench::cli
