#include "launch/worker_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>

#include "base/errors.h"
#include "emulator/host/environment.h"
#include "host/torch_in_use.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

// Nullopt: the one that this program was built with, whose facts the emulator's installation has.
std::optional<pytorch::TorchInUse> torch_of(const planning::Worker& worker) {
  if (worker.torch.folder.empty()) return std::nullopt;
  return pytorch::TorchInUse{.version = worker.torch.version,
                             .cuda = worker.torch.cuda,
                             .hip = "",
                             .git_version = worker.stamp.libtorch_git_version,
                             .folder = worker.torch.folder};
}

}  // namespace

emulator::Installation installation_for(const planning::Worker& worker) {
  const auto installation = emulator::find_installation();
  const auto torch = torch_of(worker);
  return torch ? emulator::for_program(installation, torch) : installation;
}

std::string why_not_with(const planning::Worker& worker, const records::Device& device) {
  const bool emulated = device.kind == records::DeviceKind::kEmulated;
  const auto torch = torch_of(worker);
  if (!torch || (!emulated && !device.is_card)) return "";
  if (torch->cuda.empty())
    return fmt::format(
        "PyTorch {} in {} is built without CUDA (it has no libtorch_cuda), so no case runs on a "
        "card with it, emulated or real. Take --device cpu, or install a build for CUDA, which "
        "needs no GPU and no driver: pip install torch=={}",
        torch->version, torch->folder.string(), torch->version.substr(0, torch->version.find('+')));
  if (const auto& built_with = worker.stamp.libtorch_cuda;
      built_with.empty() || built_with == planning::kNoCuda)
    return fmt::format(
        "the worker {} was built for PyTorch {}, without CUDA, so it runs no case on a card, "
        "emulated or real. `peakbench workers build` compiles one for PyTorch {}",
        worker.program, worker.stamp.libtorch_version, torch->version);
  return emulated ? emulator::why_torch_cannot_work(*torch, emulator::find_installation())
                        .value_or(std::string())
                  : "";
}

namespace {

// Goes before the run paths of the worker and of its libraries.
process::Environment to_find_libtorch(const planning::Worker& worker) {
  if (worker.torch.folder.empty()) return {};
  const auto folder = (fs::path(worker.torch.folder) / "lib").string();
  if (folder.find_first_of(":;") != std::string::npos)
    throw ConfigError(fmt::format(
        "{}: the dynamic loader accepts no folder with ':' or ';' in its name; rename it", folder));
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return {{"LD_LIBRARY_PATH", folder + (before && *before ? std::string(":") + before : "")},
          {planning::kLibtorchVariable, planning::libtorch_text(worker)}};
}

int cuda_major(const std::string& version) { return pytorch::cuda_number(version) / 1000; }

// The worker's own library does for every build of its release that has the same CUDA; for others
// one is compiled.
pytorch::LibraryInUse values_for(const planning::Worker& worker,
                                 const emulator::Installation& installation) {
  if (!worker.values.empty() &&
      cuda_major(worker.stamp.libtorch_cuda) == cuda_major(planning::libtorch_cuda(worker)))
    return {worker.values, planning::libtorch_version(worker), ""};
  return emulator::values_library_for(torch_of(worker), installation, [] { return false; });
}

void append(process::Environment& environment, process::Environment more) {
  std::ranges::move(more, std::back_inserter(environment));
}

}  // namespace

process::Environment environment_for(const records::Device& device, const planning::Worker& worker,
                                     const Emulated& how) {
  auto environment = to_find_libtorch(worker);
  if (const auto why = why_not_with(worker, device); !why.empty()) throw ConfigError(why);
  if (device.kind != records::DeviceKind::kEmulated) return environment;
  const auto installation = installation_for(worker);
  auto card = emulator::parse_card(records::card_text(device), installation);
  if (!how.limited) emulator::take_limit_away(card);
  append(environment, emulator::emulation_environment(card, installation, ""));
  if (how.values)
    append(environment,
           emulator::values_environment({.compute = true, .assume = how.assume},
                                        values_for(worker, emulator::find_installation())));
  return environment;
}

}  // namespace peakbench::launch
