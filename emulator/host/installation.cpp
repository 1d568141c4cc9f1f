#include "host/installation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "result/errors.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderVariable = "PEAKBENCH_EMULATOR_DIR";
constexpr const char* kFacts = "libtorch.json";
constexpr const char* kCore = "libpeakbench_emulator.so";

bool is_library(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("lib") && name.find(".so") != std::string::npos;
}

std::vector<fs::path> libraries_in(const fs::path& folder) {
  std::vector<fs::path> libraries;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (is_library(entry.path())) libraries.push_back(entry.path());
  }
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
          PEAKBENCH_BUILT_EMULATOR_DIR};
}

}  // namespace

Installation installation_in(const fs::path& folder) {
  std::ifstream file(folder / kFacts);
  const auto facts = nlohmann::json::parse(file, nullptr, false);
  if (!file || !facts.is_object()) {
    throw ConfigError(fmt::format("no emulated card in {}: {} is missing or unreadable",
                                  folder.string(), kFacts));
  }
  for (const auto& name : facts.value("libraries", std::vector<std::string>{kCore})) {
    if (fs::exists(folder / name)) continue;
    throw ConfigError(
        fmt::format("no emulated card in {}: {} is missing; build the target peakbench_stand_ins",
                    folder.string(), name));
  }
  return {fs::absolute(folder), facts.at("version"), facts.at("architectures"),
          libraries_in(folder)};
}

Installation find_installation() {
  std::string looked;
  for (const fs::path& folder : candidates()) {
    if (fs::exists(folder / kFacts)) return installation_in(folder);
    looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
  }
  throw ConfigError(
      fmt::format("the emulated card's libraries were not found; looked in {}. Build the target "
                  "peakbench_stand_ins, or set {} to their folder",
                  looked, kFolderVariable));
}

}  // namespace peakbench::emulator
