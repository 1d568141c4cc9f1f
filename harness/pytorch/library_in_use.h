// Which build of a library of ours a program loads: the one for its PyTorch.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "pytorch/compiled_library.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::pytorch {

// A library that is loaded into programs, as an installation has it.
struct LibraryBuilds {
  std::filesystem::path built;  // of this build
  std::string built_for;        // the version of its PyTorch
  // Of a bundled worker: below its folder, `workers`/torch-VERSION.
  std::filesystem::path workers, in_worker;
  // Bundled for releases: `libraries`/library_folder(), under the name of `built`.
  std::filesystem::path libraries;
  LibrarySources sources;
};

struct LibraryInUse {
  std::filesystem::path path;
  std::string torch_version;  // that it is compiled against
  std::string problem;        // why there is none for the program's PyTorch; empty where there is
};

// "torch-2.6.0-1eba9b3aa3c4-cu12-abi0": one library serves every build of a release with this CUDA
// and this C++ ABI. Empty: this PyTorch does not say its revision, or has no CUDA.
std::string library_folder(const TorchInUse& torch);

// The one of this build where the program's PyTorch has its version, or is not known, or there are
// no sources; else that of a bundled worker, else the one bundled for the release. Otherwise it is
// compiled: see compiled_library.h.
LibraryInUse library_for(const std::optional<TorchInUse>& torch, const LibraryBuilds& builds,
                         const std::function<bool()>& cancelled);

// The same of what is there: nothing is compiled, said or made. Nullopt where one would have to be
// compiled first.
std::optional<LibraryInUse> library_at_hand(const std::optional<TorchInUse>& torch,
                                            const LibraryBuilds& builds);

}  // namespace peakbench::pytorch
