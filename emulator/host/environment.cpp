#include "host/environment.h"

#include <fmt/format.h>

#include <cstdlib>

#include "host/preload_folder.h"

namespace peakbench::emulator {
namespace {

constexpr const char* kPrograms = "bin";  // in the installation's folder

std::string preload_list(const Installation& installation) {
  const auto folder = preload_folder(installation.folder);
  std::string list;
  for (const auto& library : installation.libraries)
    list += (list.empty() ? "" : ":") +
            (folder / library.lexically_relative(installation.folder)).string();
  if (const char* before = std::getenv("LD_PRELOAD"); before && *before)
    list += std::string(":") + before;
  return list;
}

// Before the machine's own: nvidia-smi.
std::string path_with_programs(const std::filesystem::path& folder) {
  const char* before = std::getenv("PATH");
  return folder.string() + (before && *before ? std::string(":") + before : "");
}

std::string all_devices(int count) {
  std::string list = "0";
  for (int device = 1; device < count; ++device) list += fmt::format(",{}", device);
  return list;
}

}  // namespace

process::Environment emulation_environment(const Card& card, const Installation& installation,
                                           const std::filesystem::path& ledger_folder) {
  return {{"LD_PRELOAD", preload_list(installation)},
          {kCardVariable, to_json(card.facts)},
          {kLedgerVariable, ledger_folder.string()},
          {kSharedVariable, ledger_folder.string()},
          // A machine that hides its real cards by this variable must not hide the emulated ones.
          {"CUDA_VISIBLE_DEVICES", all_devices(card.facts.count)},
          {"PATH", path_with_programs(preload_folder(installation.folder) / kPrograms)},
          // Triton opens the driver by its path.
          {"TRITON_LIBCUDA_PATH", installation.folder.string()}};
}

}  // namespace peakbench::emulator
