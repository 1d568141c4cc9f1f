#include "host/installation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "errors/errors.h"
#include "files/built_folders.h"
#include "files/file.h"
#include "json/fields.h"
#include "pytorch/torch_release.h"

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

}  // namespace peakbench::emulator
