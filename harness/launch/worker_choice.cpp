#include "launch/worker_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/errors.h"
#include "base/file.h"
#include "host/command.h"
#include "host/elf_file.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPythonVariable = "PEAKBENCH_PYTHON";
// Set by the wheel's command (python/peakbench): its own.
constexpr const char* kEnvironmentVariable = "PEAKBENCH_ENVIRONMENT_PYTHON";

struct Python {
  fs::path program;    // empty: there is none
  std::string naming;  // the variable that named it, as it was set; empty: found on PATH
};

Python find_python() {
  for (const char* variable : {kPythonVariable, kEnvironmentVariable})
    if (const char* named = std::getenv(variable); named != nullptr && *named != '\0') {
      const auto naming = fmt::format("{}={}", variable, named);
      const auto found = process::find_program(named);
      if (!found || !files::is_there(found->string()))
        throw ConfigError(naming + ": there is no such program; name your Python, or unset it");
      return {*found, naming};
    }
  for (const char* name : {"python3", "python"})
    if (const auto found = process::find_program(name)) return {*found, ""};
  return {};
}

std::string problem_of_libraries(const fs::path& folder, bool has_cuda) {
  std::vector<const char*> names{"libtorch_cpu.so", "libc10.so"};
  if (has_cuda) names.insert(names.end(), {"libtorch_cuda.so", "libc10_cuda.so"});
  for (const char* name : names) {
    const auto library = folder / "lib" / name;
    if (!files::is_there(library.string()))
      return fmt::format("lib/{} is missing; install PyTorch again", name);
    try {
      const auto needed = elf::ElfFile(library.string()).needed_libraries();
      const auto musl = std::ranges::find_if(
          needed, [](const std::string& one) { return one.starts_with("libc.musl"); });
      if (musl != needed.end())
        return fmt::format(
            "it is built for musl ({}), and Peakbench's programs need glibc: use a Python and a "
            "PyTorch that are built for glibc (manylinux)",
            *musl);
    } catch (const elf::ElfError& error) {
      return fmt::format("lib/{} cannot be loaded: {}; install PyTorch again for this machine",
                         name, error.what());
    }
  }
  return "";
}

}  // namespace

fs::path python_of_environment() { return find_python().program; }

TorchFound torch_found_in(const fs::path& folder) {
  TorchFound found;
  found.folder = folder;
  try {
    auto torch = pytorch::torch_in(folder);
    if (!torch.hip.empty())
      found.problem = fmt::format(
          "it is PyTorch {}, built for ROCm {}; workers are for builds for CUDA or the CPU: "
          "install one of these",
          torch.version, torch.hip);
    else if (torch.git_version.empty())
      found.problem = "its version.py names no git revision; install PyTorch again";
    else
      found.problem = problem_of_libraries(folder, !torch.cuda.empty());
    if (found.problem.empty()) found.torch = std::move(torch);
  } catch (const ConfigError& error) {
    found.problem = fmt::format("{}; install PyTorch again", error.what());
  }
  return found;
}

TorchFound torch_of_environment() {
  const auto python = find_python();
  if (python.program.empty()) return {};
  // As for a program beside Python, `torchrun` say: what lies in the working folder is not its
  // torch.
  const auto folder = pytorch::torch_folder_of_python(
      python.program, fs::absolute(python.program).parent_path(), [] { return false; });
  if (!folder && !python.naming.empty())
    throw ConfigError(python.naming + ": that is no Python 3 that starts; name yours, or unset it");
  auto found = folder.value_or(fs::path()).empty() ? TorchFound{} : torch_found_in(*folder);
  found.python = python.program.string();
  return found;
}

namespace {

constexpr const char* kWithout =
    "Commands that need no worker: emulate, trace, fit -- PROGRAM, import, report, compare, gate, "
    "history, publish.";

std::optional<pytorch::TorchInUse> torch_for(const WorkerFolder& worker,
                                             const TorchFound& environment,
                                             const TorchFolders& own) {
  if (environment.torch && serves(worker.stamp, *environment.torch)) return environment.torch;
  for (const auto& folder : own(worker)) {
    if (folder.empty() || !files::is_there((folder / "version.py").string())) continue;
    if (auto found = torch_found_in(folder); found.torch && serves(worker.stamp, *found.torch))
      return found.torch;
  }
  return std::nullopt;
}

bool loads_environments(const Candidate& one, const TorchFound& environment) {
  return one.torch && environment.torch && one.torch->folder == environment.torch->folder;
}

bool fits(const Candidate& one, const Wish& wish, const TorchFound& environment) {
  if (!one.torch) return false;
  return wish.version.empty()
             ? loads_environments(one, environment)
             : wish.version == kNewest || planning::is_start_of(wish.version, one.torch->version);
}

// The best one is the greatest.
auto rank_of(const Candidate& one, const Wish& wish, const TorchFound& environment) {
  const auto& stamp = one.worker->stamp;
  return std::tuple(wish.version != kNewest && loads_environments(one, environment),
                    numbers_of(one.torch->version), stamp.libtorch_version == one.torch->version,
                    pytorch::cuda_number(stamp.libtorch_cuda) / 1000 ==
                        pytorch::cuda_number(one.torch->cuda) / 1000);
}

std::string what_there_is(const std::vector<Candidate>& all) {
  std::vector<std::string> versions;
  for (const auto& one : all)
    if (std::ranges::find(versions, one.worker->stamp.libtorch_version) == versions.end())
      versions.push_back(one.worker->stamp.libtorch_version);
  if (versions.empty()) return "There is no worker yet";
  return fmt::format("There {} for {}", versions.size() == 1 ? "is a worker" : "are workers",
                     fmt::join(versions, ", "));
}

std::string what_to_do(const TorchFound& environment) {
  if (environment.torch)
    return "`peakbench workers build` compiles one for it, once and in minutes.";
  if (!environment.folder.empty()) return "";
  return "Install one: pip install torch (5 GB); or without NVIDIA's packages (1.3 GB): pip "
         "install --no-deps torch, then pip install filelock fsspec jinja2 networkx setuptools "
         "sympy "
         "typing-extensions.";
}

// A worker for what was asked for, without its PyTorch.
const Candidate* without_torch(const std::vector<Candidate>& all, const Wish& wish) {
  const auto found = std::ranges::find_if(all, [&](const Candidate& one) {
    return !one.torch && planning::is_start_of(wish.version, one.worker->stamp.libtorch_version);
  });
  return found == all.end() ? nullptr : &*found;
}

// One for another build of the release that was asked for; rather one whose PyTorch is here.
const Candidate* of_the_release(const std::vector<Candidate>& all, const std::string& version) {
  const Candidate* found = nullptr;
  if (version.find('+') == std::string::npos) return found;
  for (const auto& one : all)
    if (release_of(one.worker->stamp.libtorch_version) == release_of(version) &&
        (found == nullptr || (one.torch && !found->torch)))
      found = &one;
  return found;
}

// The one beside the program is not in a folder of workers, and finds its PyTorch by itself.
bool is_own(const Candidate& one) { return one.torch && one.torch->folder.empty(); }

// `environment`: what it has, in words.
std::string why_not_this_build(const Candidate& near, const std::string& version,
                               const std::string& environment) {
  const auto built_with = near.worker->stamp.libtorch_version, release = release_of(version);
  if (is_own(near))
    return fmt::format(
        "that build of PyTorch is not installed, {} is. The worker next to the program only loads "
        "that one. Use --torch {}, or compile a worker for yours with `peakbench workers build`.",
        near.torch->version, release);
  const auto serves = fmt::format(
      "The worker for {} serves any build of the release: install that one", built_with);
  if (!near.torch)
    return fmt::format("that build of PyTorch is not installed: {}. {}.", environment, serves);
  return fmt::format("that build of PyTorch is not installed, {} in {} is. {}, or use --torch {}.",
                     near.torch->version, near.torch->folder.string(), serves, release);
}

std::string why_not_as_wished(const std::vector<Candidate>& all, const Wish& wish,
                              const TorchFound& environment) {
  const auto asked = fmt::format("{} {}", wish.named_by, wish.version);
  const auto here = environment.torch
                        ? fmt::format("the environment has {} in {}", environment.torch->version,
                                      environment.torch->folder.string())
                        : about(environment);
  if (const auto* one = without_torch(all, wish))
    return fmt::format(
        "{}: there is a worker for PyTorch {}, and no such PyTorch for it to load: {}. Install it: "
        "pip install torch=={}. {}",
        asked, one->worker->stamp.libtorch_version, here,
        release_of(one->worker->stamp.libtorch_version), kWithout);
  if (const auto* near = of_the_release(all, wish.version))
    return fmt::format("{}: {} {}", asked, why_not_this_build(*near, wish.version, here), kWithout);
  return fmt::format(
      "{}: there is no worker for that PyTorch. {}; {}. `peakbench workers build` compiles one for "
      "the environment's PyTorch, `peakbench workers` shows those that there are. {}",
      asked, what_there_is(all), here, kWithout);
}

// A build's plugins were built with what its worker was.
planning::Stamp stamp_of_plugins(const std::string& folder) {
  std::error_code none;
  for (auto entry = fs::directory_iterator(folder, none);
       !none && entry != fs::directory_iterator(); entry.increment(none))
    try {
      if (entry->path().extension() == ".so")
        return planning::read_plugin(entry->path().string()).stamp;
    } catch (const PluginError&) {  // said where the plugins are looked for
    }
  return planning::own_stamp();
}

}  // namespace

std::string about(const TorchFound& environment) {
  if (environment.python.empty())
    return "there is no python3 or python on PATH whose PyTorch could be used (PEAKBENCH_PYTHON "
           "names another Python)";
  if (environment.folder.empty())
    return fmt::format("the environment of {} has no PyTorch", environment.python);
  if (!environment.torch)
    return fmt::format("the PyTorch in {} cannot be used: {}", environment.folder.string(),
                       environment.problem);
  return fmt::format("there is no worker for PyTorch {} in {}", environment.torch->version,
                     environment.folder.string());
}

std::string release_of(const std::string& version) { return version.substr(0, version.find('+')); }

std::tuple<int, int, int> numbers_of(const std::string& version) {
  int major = 0, minor = 0, patch = 0;
  std::sscanf(version.c_str(), "%d.%d.%d", &major, &minor, &patch);
  return {major, minor, patch};
}

bool serves(const planning::Stamp& worker, const pytorch::TorchInUse& torch) {
  return !torch.git_version.empty() && worker.libtorch_git_version == torch.git_version &&
         release_of(worker.libtorch_version) == release_of(torch.version);
}

std::vector<Candidate> candidates(const std::vector<WorkerFolder>& workers,
                                  const TorchFound& environment, const TorchFolders& own) {
  std::vector<Candidate> all;
  for (const auto& worker : workers)
    if (worker.problem.empty()) all.push_back({&worker, torch_for(worker, environment, own)});
  return all;
}

std::optional<Candidate> choose(const std::vector<Candidate>& all, const Wish& wish,
                                const TorchFound& environment) {
  std::optional<Candidate> best;
  for (const auto& one : all)
    if (fits(one, wish, environment) &&
        (!best || rank_of(one, wish, environment) > rank_of(*best, wish, environment)))
      best = one;
  return best;
}

std::vector<std::string> releases_of(const std::vector<Candidate>& all) {
  std::vector<std::string> releases;
  for (const auto& one : all)
    if (one.torch) releases.push_back(release_of(one.torch->version));
  std::ranges::sort(releases, {}, numbers_of);
  releases.erase(std::unique(releases.begin(), releases.end()), releases.end());
  return releases;
}

std::string why_none(const std::vector<Candidate>& all, const Wish& wish,
                     const TorchFound& environment) {
  if (!wish.version.empty()) return why_not_as_wished(all, wish, environment);
  const auto what = what_to_do(environment);
  return fmt::format("{}. {}. {}{}{}", about(environment), what_there_is(all), what,
                     what.empty() ? "" : " ", kWithout);
}

planning::Worker worker_of(const Candidate& chosen) {
  const auto& folder = chosen.worker->folder;
  planning::Worker worker;
  worker.program = (folder / "bin/peakbench-worker").string();
  worker.plugins = (folder / "lib/peakbench/plugins").string();
  worker.stamp = chosen.worker->stamp;
  if (const auto values = (folder / "lib/peakbench/values/peakbench_values.so").string();
      files::is_there(values))
    worker.values = values;
  if (chosen.torch)
    worker.torch = {chosen.torch->folder.string(), chosen.torch->version, chosen.torch->cuda};
  return worker;
}

planning::Worker worker_in(const fs::path& folder, const std::string& peakbench) {
  const std::vector found{read_worker_folder(folder, peakbench)};
  if (!found.front().problem.empty())
    throw ConfigError(fmt::format("{}: {}", folder.string(), found.front().problem));
  return worker_of(candidates(found, torch_of_environment(), [](const WorkerFolder& one) {
                     return std::vector{one.torch};
                   }).front());
}

planning::Worker worker_in_build(const fs::path& folder, const std::string& peakbench) {
  if (is_worker_folder(folder)) return worker_in(folder, peakbench);
  planning::Worker worker;
  worker.program = (folder / "bin/peakbench-worker").string();
  worker.plugins = (folder / "lib/peakbench/plugins").string();
  if (!files::is_there(worker.program))
    throw ConfigError(fmt::format(
        "{}: no bin/peakbench-worker there. Name the folder that Peakbench is installed in, or "
        "a build folder like build/release.",
        folder.string()));
  worker.stamp = stamp_of_plugins(worker.plugins);
  return worker;
}

}  // namespace peakbench::launch
