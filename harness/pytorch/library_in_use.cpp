#include "pytorch/library_in_use.h"

#include <fmt/format.h>

#include "files/file.h"

namespace peakbench::pytorch {
namespace {

// The one that the installation brings; nullopt where it has none for this PyTorch.
std::optional<LibraryInUse> library_installed(const std::optional<TorchInUse>& torch,
                                              const LibraryBuilds& builds) {
  const auto& sources = builds.sources;
  if (!torch || torch->version == builds.built_for ||
      !files::is_there((sources.folder / sources.whole).string()))
    return LibraryInUse{builds.built, builds.built_for, ""};
  const auto carried = builds.workers / ("torch-" + torch->version) / builds.in_worker;
  if (!files::is_there(carried.string())) return std::nullopt;
  return LibraryInUse{carried, torch->version, ""};
}

}  // namespace

LibraryInUse library_for(const std::optional<TorchInUse>& torch, const LibraryBuilds& builds,
                         const std::function<bool()>& cancelled) {
  if (const auto installed = library_installed(torch, builds)) return *installed;
  const auto library = compiled_library(*torch, builds.sources, cancelled);
  return {library.path, torch->version, library.problem};
}

std::optional<LibraryInUse> library_at_hand(const std::optional<TorchInUse>& torch,
                                            const LibraryBuilds& builds) {
  if (const auto installed = library_installed(torch, builds)) return installed;
  const auto kept = kept_library(*torch, builds.sources);
  if (kept.empty()) return std::nullopt;
  return LibraryInUse{kept, torch->version, ""};
}

}  // namespace peakbench::pytorch
