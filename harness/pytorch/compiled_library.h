// A library of ours, compiled for somebody's PyTorch where it is first needed, and kept.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "pytorch/torch_in_use.h"

namespace peakbench::pytorch {

struct LibrarySources {
  std::string kind;                    // "values": its folder in the cache, and what it is called
  std::filesystem::path folder;        // all that it is made of; searched for includes
  std::filesystem::path whole;         // in the folder: the source that includes the others
  std::vector<std::string> libraries;  // of PyTorch's, that it uses: libc10.so
};

struct CompiledLibrary {
  std::filesystem::path path;
  std::string problem;  // why there is none; empty where there is
};

// Compiled against this PyTorch's headers by the machine's compiler, within 300 s, and kept in the
// user's cache folder (library_cache.h) under the version and what it was made of. Of several
// processes that need the same one, one compiles it. One in the cache that others could have
// written is compiled anew. All this is said on stderr, as it takes its time. `cancelled` is asked
// meanwhile; the compiler is ended then, and nothing left behind.
CompiledLibrary compiled_library(const TorchInUse& torch, const LibrarySources& sources,
                                 const std::function<bool()>& cancelled);

// The one that is kept already, if it may be loaded; else empty. Says, makes and compiles nothing.
std::filesystem::path kept_library(const TorchInUse& torch, const LibrarySources& sources);

}  // namespace peakbench::pytorch
