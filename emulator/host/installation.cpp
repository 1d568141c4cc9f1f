#include "emulator/host/installation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/built_folders.h"
#include "base/errors.h"
#include "base/fields.h"
#include "base/file.h"
#include "core/vendor_versions.h"
#include "host/torch_in_use.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderVariable = "PEAKBENCH_EMULATOR_DIR";
constexpr const char* kFactsFile = "libtorch.json";
constexpr const char* kCore = "libpeakbench_emulator.so";
constexpr const char* kCuda12 = "cuda12";

bool is_library(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("lib") && name.find(".so") != std::string::npos;
}

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> libraries;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error);
       !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (is_library(entry->path())) libraries.push_back(entry->path());
  }
  if (error)
    throw ConfigError(fmt::format("no emulated card in {}: {}", folder.string(), error.message()));
  // The shared state first; the rest by name, so that every process has them in the same order.
  std::ranges::sort(libraries, [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename() != kCore, a) < std::pair(b.filename() != kCore, b);
  });
  return libraries;
}

std::vector<fs::path> candidates() {
  if (const char* given = std::getenv(kFolderVariable); given && *given) return {given};
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  return {program.parent_path().parent_path() / "lib/peakbench/emulator",
          files::kBuiltEmulatorFolder};
}

struct Facts {
  std::string version, cuda;
  std::vector<int> architectures;  // 90 for sm_90
  std::vector<std::string> libraries, cuda12;
};

Facts read_facts(const fs::path& folder) {
  try {
    const auto json = files::read_json_file((folder / kFactsFile).string());
    const Fields fields(json);
    Facts facts{
        fields.get<std::string>("version"), fields.get_or<std::string>("cuda", ""), {}, {}, {}};
    for (const auto number : fields.get<std::vector<std::int64_t>>("architectures"))
      facts.architectures.push_back(static_cast<int>(std::clamp<std::int64_t>(number, 0, 9999)));
    facts.libraries = fields.get_or<std::vector<std::string>>("libraries", {kCore});
    facts.cuda12 = fields.get_or<std::vector<std::string>>("cuda12", {});
    return facts;
  } catch (const RunFileError& error) {
    throw ConfigError(
        fmt::format("no emulated card in {}: {}: {}", folder.string(), kFactsFile, error.what()));
  }
}

void check_libraries(const fs::path& folder, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if (files::is_there((folder / name).string())) continue;
    throw ConfigError(
        fmt::format("no emulated card in {}: {} is missing; build the target peakbench_stand_ins",
                    folder.string(), name));
  }
}

}  // namespace

Installation installation_in(const fs::path& given) {
  const Facts facts = read_facts(given);
  check_libraries(given, facts.libraries);
  check_libraries(given, facts.cuda12);
  std::error_code error;
  const auto absolute = fs::absolute(given, error);
  Installation found;
  found.folder = error ? given : absolute;
  found.libtorch_version = facts.version;
  found.libtorch_cuda = facts.cuda;
  found.architectures = facts.architectures;
  found.libraries = libraries_in(found.folder);
  if (!facts.cuda12.empty()) {
    found.cuda12_libraries = libraries_in(found.folder / kCuda12);
    found.cuda_majors.push_back(12);
  }
  if (const int own = pytorch::cuda_number(facts.cuda) / 1000; own && own != 12)
    found.cuda_majors.push_back(own);
  return found;
}

Installation find_installation() {
  std::string looked;
  for (const fs::path& folder : candidates()) {
    if (files::is_there((folder / kFactsFile).string())) return installation_in(folder);
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  throw ConfigError(
      fmt::format("the emulated card's libraries were not found; looked in {}. Build the target "
                  "peakbench_stand_ins, or set {} to their folder",
                  looked, kFolderVariable));
}

namespace {

// libcudart of libcudart.so.12.
std::string stem_of(const fs::path& library) {
  const auto name = library.filename().string();
  return name.substr(0, name.find(".so"));
}

// Those of CUDA 12 in place of their namesakes.
std::vector<fs::path> libraries_for_cuda12(const Installation& installation) {
  const auto& own = installation.cuda12_libraries;
  std::vector<fs::path> libraries;
  for (const fs::path& library : installation.libraries) {
    const auto replaced = std::ranges::any_of(
        own, [&](const fs::path& other) { return stem_of(other) == stem_of(library); });
    if (!replaced) libraries.push_back(library);
  }
  libraries.insert(libraries.end(), own.begin(), own.end());
  return libraries;
}

constexpr int kOldestMajor = 2, kOldestMinor = 6;

bool is_too_old(const std::string& version) {
  int major = 0, minor = 0;
  if (std::sscanf(version.c_str(), "%d.%d", &major, &minor) != 2) return false;
  return major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor);
}

}  // namespace

Installation for_program(const Installation& installation,
                         const std::optional<pytorch::TorchInUse>& torch) {
  Installation fitted = installation;
  if (!torch) {
    const auto& others = installation.cuda12_libraries;
    fitted.libraries.insert(fitted.libraries.end(), others.begin(), others.end());
    return fitted;
  }
  fitted.libtorch_version = torch->version;
  fitted.libtorch_cuda = torch->cuda;
  fitted.cuda_version = pytorch::cuda_number(torch->cuda);
  if (fitted.cuda_version / 1000 == 12 && !installation.cuda12_libraries.empty())
    fitted.libraries = libraries_for_cuda12(installation);
  if (auto found = pytorch::architectures_of(torch->folder); !found.empty())
    fitted.architectures = std::move(found);
  const VendorVersions vendors = vendor_versions_beside(torch->folder.string());
  fitted.cudnn_version = vendors.cudnn;
  fitted.nccl_version = vendors.nccl;
  return fitted;
}

std::optional<std::string> why_torch_cannot_work(const pytorch::TorchInUse& torch,
                                                 const Installation& installation) {
  const std::string what = fmt::format("PyTorch {} in {}", torch.version, torch.folder.string());
  if (!torch.hip.empty())
    return fmt::format(
        "{} is built for ROCm {}, and the emulated card is a CUDA card. Install a build of PyTorch "
        "for CUDA",
        what, torch.hip);
  if (torch.cuda.empty())
    return fmt::format(
        "{} is built without CUDA, so it takes no memory of a card. Install a build of PyTorch for "
        "CUDA; no GPU and no driver is needed",
        what);
  if (is_too_old(torch.version))
    return fmt::format("{} is too old: the emulated card works with PyTorch {}.{} and later", what,
                       kOldestMajor, kOldestMinor);
  const auto& served = installation.cuda_majors;
  if (std::ranges::count(served, pytorch::cuda_number(torch.cuda) / 1000) == 0)
    return fmt::format(
        "{} is built for CUDA {}; this emulated card has the libraries of CUDA {}. Install a build "
        "of PyTorch for one of these",
        what, torch.cuda, fmt::join(served, " and "));
  return std::nullopt;
}

}  // namespace peakbench::emulator
