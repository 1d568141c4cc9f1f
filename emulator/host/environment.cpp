#include "emulator/host/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/errors.h"
#include "core/values_hook.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

bool can_be_preloaded(const fs::path& path) {
  return path.string().find_first_of(" :$") == std::string::npos;
}

// Where a temporary folder may lie, the user's own choice first.
std::vector<fs::path> temporary_folders() {
  std::vector<fs::path> folders;
  if (const char* chosen = std::getenv("TMPDIR"); chosen && *chosen)
    folders.push_back(fs::absolute(chosen));
  for (const char* usual : {"/tmp", "/var/tmp", "/dev/shm"}) folders.emplace_back(usual);
  std::erase_if(folders, [](const fs::path& folder) { return !can_be_preloaded(folder); });
  return folders;
}

class Link {
 public:
  explicit Link(const fs::path& target) {
    int problem = 0;
    for (const auto& folder : temporary_folders()) {
      std::string pattern = (folder / "peakbench-emulator.XXXXXX").string();
      if (mkdtemp(pattern.data()) == nullptr) {  // for this user alone
        problem = errno;
        continue;
      }
      folder_ = pattern;
      std::error_code error;
      fs::create_directory_symlink(target, path(), error);
      if (!error) return;
      problem = error.value();
      remove();
    }
    throw ConfigError(
        fmt::format("{}: the dynamic loader takes no path with a space, a colon or a dollar in "
                    "LD_PRELOAD, and no folder for a link to it can be made: {}. Set TMPDIR to a "
                    "folder that you may write to, or install Peakbench elsewhere",
                    target.string(), std::strerror(problem)));
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link() { remove(); }

  fs::path path() const { return folder_ / "lib"; }

 private:
  // Nothing but the link and its folder: what it leads to stays.
  void remove() const {
    std::error_code ignored;
    fs::remove(path(), ignored);
    fs::remove(folder_, ignored);
  }

  fs::path folder_;
};

// `folder` itself; or, where its path has what the dynamic loader takes for a separator or a
// variable (a space, a colon, a dollar), a link to it in a private folder that goes when this
// process exits. Throws ConfigError where no such folder can be made.
fs::path preload_folder(const fs::path& folder) {
  if (can_be_preloaded(folder)) return folder;
  // For as long as this process lives: what it started may start others.
  static std::mutex mutex;
  static std::map<fs::path, std::unique_ptr<Link>> links;
  const std::lock_guard lock(mutex);
  auto& link = links[folder];
  if (!link) link = std::make_unique<Link>(folder);
  return link->path();
}

constexpr const char* kPrograms = "bin";  // in the installation's folder

std::string preload_list(const Installation& installation) {
  const auto folder = preload_folder(installation.folder);
  std::string list;
  for (const auto& library : installation.libraries)
    list += (list.empty() ? "" : ":") +
            (folder / library.lexically_relative(installation.folder)).string();
  if (const char* before = std::getenv("LD_PRELOAD"); before && *before)
    list += std::string(":") + before;
  return list;
}

// The folder, then those of the variable.
std::string before(const char* variable, const std::filesystem::path& folder) {
  const char* own = std::getenv(variable);
  return folder.string() + (own && *own ? std::string(":") + own : "");
}

std::string all_devices(int count) {
  std::string list = "0";
  for (int device = 1; device < count; ++device) list += fmt::format(",{}", device);
  return list;
}

}  // namespace

process::Environment emulation_environment(const Card& card, const Installation& installation,
                                           const std::filesystem::path& ledger_folder) {
  return {{"LD_PRELOAD", preload_list(installation)},
          {kCardVariable, to_json(card.facts)},
          {kLedgerVariable, ledger_folder.string()},
          {kSharedVariable, ledger_folder.string()},
          // A machine that hides its real cards by this variable must not hide the emulated ones.
          {"CUDA_VISIBLE_DEVICES", all_devices(card.facts.count)},
          {"PATH", before("PATH", preload_folder(installation.folder) / kPrograms)},
          // Python reads sitecustomize.py there: single emulated ranks.
          {"PYTHONPATH",
           before("PYTHONPATH", preload_folder(installation.folder.parent_path() / "tracer"))},
          // Triton opens the driver by its path.
          {"TRITON_LIBCUDA_PATH", installation.folder.string()}};
}

std::vector<process::Environment> environments_of_runs(const World& world, int cards_of_a_node) {
  if (world.ranks == 0) return {{}};
  std::vector<process::Environment> runs;
  const auto of_node = std::min<std::int64_t>(cards_of_a_node, world.ranks);
  for (const auto rank : world.run) {
    if (rank >= world.ranks)
      throw ConfigError(fmt::format("--rank {}: a world of {} has the ranks 0 to {}", rank,
                                    world.ranks, world.ranks - 1));
    runs.push_back({{kRanksVariable, "alone"},
                    {kWorldVariable, fmt::format("{} of {}", rank, world.ranks)},
                    {"RANK", std::to_string(rank)},
                    {"LOCAL_RANK", std::to_string(rank % of_node)},
                    {"GROUP_RANK", std::to_string(rank / of_node)},
                    {"WORLD_SIZE", std::to_string(world.ranks)},
                    {"LOCAL_WORLD_SIZE", std::to_string(of_node)},
                    {"MASTER_ADDR", "127.0.0.1"},
                    {"MASTER_PORT", "29500"}});
  }
  return runs;
}

pytorch::LibraryInUse values_library_for(const std::optional<pytorch::TorchInUse>& torch,
                                         const Installation& installation,
                                         const std::function<bool()>& cancelled) {
  const auto& folder = installation.folder;
  const pytorch::LibraryBuilds builds{
      .built = folder / "values/peakbench_values.so",
      .built_for = installation.libtorch_version,
      .workers = folder.parent_path().parent_path().parent_path() / "workers",
      .in_worker = "lib/peakbench/values/peakbench_values.so",
      .libraries = folder.parent_path().parent_path().parent_path() / "libraries",
      .sources = {.kind = "values",
                  .folder = folder / "values/source",
                  .whole = "values/whole.cpp",
                  .libraries = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so"}}};
  auto library = pytorch::library_for(torch, builds, cancelled);
  if (!library.problem.empty())
    library.problem =
        fmt::format("none are compiled for PyTorch {}: {}", library.torch_version, library.problem);
  return library;
}

namespace {

void check_assumption(const ValuesRequest& request) {
  if (request.assume.empty()) return;
  if (request.assume != "nonzero=all" && request.assume != "nonzero=none")
    throw ConfigError(
        fmt::format("--assume {}: expected nonzero=all or nonzero=none, for the rows of an "
                    "operator's result whose number depends on unknown values",
                    request.assume));
  if (!request.compute)
    throw ConfigError(
        "--assume and --no-compute: an assumption needs values to be followed; leave one out");
}

}  // namespace

process::Environment values_environment(const ValuesRequest& request,
                                        const Installation& installation,
                                        const std::optional<pytorch::TorchInUse>& torch,
                                        const std::function<bool()>& cancelled) {
  check_assumption(request);
  return values_environment(request, values_library_for(torch, installation, cancelled));
}

process::Environment values_environment(const ValuesRequest& request,
                                        const pytorch::LibraryInUse& library) {
  check_assumption(request);
  return {{kValuesVariable, library.path.string()},
          {kComputeVariable, request.compute ? "1" : "0"},
          {kValuesVersionVariable, library.torch_version},
          {kValuesProblemVariable, library.problem},
          {kAssumeVariable, request.assume},
          {kGuessVariable, std::to_string(request.guess)}};
}

}  // namespace peakbench::emulator
