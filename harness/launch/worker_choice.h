#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "host/torch_in_use.h"
#include "launch/worker_folder.h"
#include "planning/worker.h"

namespace peakbench::launch {

// The PyTorch of the environment that we are in, and whether a worker can load it.

struct TorchFound {
  std::string python = {};            // that was asked; empty: no Python
  std::filesystem::path folder = {};  // of its package `torch`; empty: it has none
  // One that a worker can be chosen or built for.
  std::optional<pytorch::TorchInUse> torch = {};
  std::string problem = {};  // of the one in `folder`, where that cannot be
};

// What the Python of $PEAKBENCH_PYTHON, else python3 or python on PATH, would import. Starts
// Python, for 20 s at most.
TorchFound torch_of_environment();

// That Python, or the one that Peakbench was installed for. Empty: none. Throws ConfigError if a
// variable names a program that does not exist.
std::filesystem::path python_of_environment();

// The package in this folder. Problems: it cannot be read, its LibTorch is missing, is for another
// processor or another C library, or is built for ROCm.
TorchFound torch_found_in(const std::filesystem::path& folder);

// Which worker serves, by the PyTorch that was asked for or that is there.

// A version from the user, or its beginning (2.15, 2.15.0, 2.15.0+cu132), or the newest installed
// one. Empty: the environment's PyTorch decides.
inline constexpr const char* kNewest = "newest";
struct Wish {
  std::string version;
  std::string named_by;  // "--torch", "PEAKBENCH_TORCH"
};

// 2.11.0+cu130: 2.11.0.
std::string release_of(const std::string& version);
// 2.11.0+cu130: 2, 11, 0; to be compared by.
std::tuple<int, int, int> numbers_of(const std::string& version);

// The git revision and the release agree. The local part (+cu130, +cpu) may differ: a worker links
// nothing of CUDA itself.
bool serves(const planning::Stamp& worker, const pytorch::TorchInUse& torch);

// A worker that can be used, and the PyTorch that it would load; nullopt: none of its is here.
struct Candidate {
  const WorkerFolder* worker = nullptr;
  std::optional<pytorch::TorchInUse> torch;
};

// `own`: other PyTorchs that a worker may load than the environment's. They are the one that it was
// built with, and the one next to the installation (WorkerFolder -> folders of packages).
using TorchFolders = std::function<std::vector<std::filesystem::path>(const WorkerFolder&)>;
std::vector<Candidate> candidates(const std::vector<WorkerFolder>& workers,
                                  const TorchFound& environment, const TorchFolders& own);

// Nullopt: none fits. Of several: the one that loads the environment's PyTorch, then the newest
// release, then the one that was built with this very version, then the one for the same CUDA.
std::optional<Candidate> choose(const std::vector<Candidate>& all, const Wish& wish,
                                const TorchFound& environment);

// Of those that can be used, 2.11.0, oldest first and each once.
std::vector<std::string> releases_of(const std::vector<Candidate>& all);

// One sentence or two: which PyTorch was found and where, which workers there are, what to do, and
// what works without one.
std::string why_none(const std::vector<Candidate>& all, const Wish& wish,
                     const TorchFound& environment);

// What was found, as a sentence without its full stop: "the environment of PYTHON has no PyTorch".
std::string about(const TorchFound& environment);

planning::Worker worker_of(const Candidate& chosen);

// The worker in a folder from the user. Throws ConfigError if it cannot be used. If its PyTorch is
// unknown, it loads the one that it was built with.
planning::Worker worker_in(const std::filesystem::path& folder, const std::string& peakbench);

// From a worker's folder, an installation or a build folder. Throws ConfigError for any other.
planning::Worker worker_in_build(const std::filesystem::path& folder, const std::string& peakbench);

}  // namespace peakbench::launch
