#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/torch_in_use.h"

namespace peakbench::pytorch {

// Folders of libraries that are compiled on this machine. They are loaded into the user's programs,
// so only the user may be able to write there.

// $XDG_CACHE_HOME/peakbench/KIND, else ~/.cache/peakbench/KIND. Throws ConfigError where neither
// variable names a folder.
std::filesystem::path cache_folder(const std::string& kind);

// Makes a folder of cache_folder(), with its parents, for this user alone, whatever the umask; one
// of ours that others may enter is closed to them. Throws ConfigError where it cannot be made, or
// is another user's.
void make_cache_folder(const std::filesystem::path& folder);

// Why a path in the cache must not be used: other users own it or can write to it. For a link only
// the owner counts. Empty if it may be used.
std::string why_not_trusted(const std::filesystem::path& path);

// The same of a file that is to be loaded: others can write to it, or it is theirs. Empty where
// it may be.
std::string why_not_loaded(const std::filesystem::path& library);

// A library of ours, compiled for a user's PyTorch at the first use, and kept.

struct LibrarySources {
  std::string kind;                    // "values": its folder in the cache, and what it is called
  std::filesystem::path folder;        // all of its sources; searched for includes
  std::filesystem::path whole;         // in the folder: the source that includes the others
  std::vector<std::string> libraries;  // of PyTorch's, that it uses: libc10.so
};

struct CompiledLibrary {
  std::filesystem::path path;
  std::string problem;  // why it is missing; else empty
};

// Compiles the library against this PyTorch's headers, within 300 s. Keeps it in the user's cache
// folder (compiled_library.h) under its version and inputs. If several processes need the same one,
// one of them compiles it. A cached library that other users could have written is compiled again.
// All this is reported on stderr. If `cancelled` returns true, the compiler is ended, and no files
// are left.
CompiledLibrary compiled_library(const TorchInUse& torch, const LibrarySources& sources,
                                 const std::function<bool()>& cancelled);

// Which build of a library of ours a program loads: the one for its PyTorch.

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
  std::string problem;        // why it is missing for the program's PyTorch; else empty
};

// "torch-2.6.0-1eba9b3aa3c4-cu12-abi0": one library serves every build of a release with this CUDA
// and this C++ ABI. Empty: this PyTorch does not say its revision, or has no CUDA.
std::string library_folder(const TorchInUse& torch);

// The library for the program's PyTorch, the first of these:
//
// 1. this build's, if its version is the same, or the version is unknown, or there are no sources;
// 2. a bundled worker's;
// 3. the one bundled for the release;
// 4. a compiled one (compiled_library.h).
LibraryInUse library_for(const std::optional<TorchInUse>& torch, const LibraryBuilds& builds,
                         const std::function<bool()>& cancelled);

// The same without compiling, printing or writing anything. Nullopt if the library would have to be
// compiled first.
std::optional<LibraryInUse> library_at_hand(const std::optional<TorchInUse>& torch,
                                            const LibraryBuilds& builds);

}  // namespace peakbench::pytorch
