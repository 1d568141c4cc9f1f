#include "pytorch/library_in_use.h"

#include <fmt/format.h>

#include "files/file.h"
#include "pytorch/compiler.h"
#include "pytorch/torch_release.h"

namespace peakbench::pytorch {
namespace {

namespace fs = std::filesystem;

// The one that the installation brings; nullopt where it has none for this PyTorch.
std::optional<LibraryInUse> library_installed(const std::optional<TorchInUse>& torch,
                                              const LibraryBuilds& builds) {
  const auto is_there = [](const fs::path& path) { return files::is_there(path.string()); };
  const auto of_worker = [&](const std::string& version) {
    return builds.workers / ("torch-" + version) / builds.in_worker;
  };
  LibraryInUse own{is_there(builds.built) ? builds.built : of_worker(builds.built_for),
                   builds.built_for, ""};
  if (!is_there(own.path))
    own.problem = "which PyTorch the program has is not known before it starts";
  if (!torch) return own;
  if (torch->version == builds.built_for && own.problem.empty()) return own;
  if (const auto path = of_worker(torch->version); is_there(path))
    return LibraryInUse{path, torch->version, ""};
  if (const auto folder = library_folder(*torch); !folder.empty())
    if (const auto path = builds.libraries / folder / builds.built.filename(); is_there(path))
      return LibraryInUse{path, torch->version, ""};
  if (!is_there(builds.sources.folder / builds.sources.whole)) return own;
  return std::nullopt;
}

}  // namespace

std::string library_folder(const TorchInUse& torch) {
  constexpr std::size_t kEnoughOfRevision = 12;
  if (torch.cuda.empty() || torch.git_version.size() < kEnoughOfRevision) return "";
  return fmt::format("torch-{}-{}-cu{}-abi{}", torch.version.substr(0, torch.version.find('+')),
                     torch.git_version.substr(0, kEnoughOfRevision), cuda_number(torch.cuda) / 1000,
                     cxx_abi(torch.folder));
}

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
