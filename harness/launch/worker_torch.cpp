#include "launch/worker_torch.h"

#include <fmt/format.h>

#include "host/for_program.h"

namespace peakbench::launch {

std::optional<pytorch::TorchInUse> torch_of(const manifest::Worker& worker) {
  if (worker.torch.folder.empty()) return std::nullopt;
  return pytorch::TorchInUse{.version = worker.torch.version,
                             .cuda = worker.torch.cuda,
                             .hip = "",
                             .git_version = worker.stamp.libtorch_git_version,
                             .folder = worker.torch.folder};
}

emulator::Installation installation_for(const manifest::Worker& worker) {
  const auto installation = emulator::find_installation();
  const auto torch = torch_of(worker);
  return torch ? emulator::for_program(installation, torch) : installation;
}

std::string why_not_with(const manifest::Worker& worker, const result::Device& device) {
  const bool emulated = device.kind == result::DeviceKind::kEmulated;
  const auto torch = torch_of(worker);
  if (!torch || (!emulated && !device.is_card)) return "";
  if (torch->cuda.empty())
    return fmt::format(
        "PyTorch {} in {} is built without CUDA (it has no libtorch_cuda), so no case runs on a "
        "card with it, emulated or real. Take --device cpu, or install a build for CUDA, which "
        "needs no GPU and no driver: pip install torch=={}",
        torch->version, torch->folder.string(), torch->version.substr(0, torch->version.find('+')));
  if (const auto& built_with = worker.stamp.libtorch_cuda;
      built_with.empty() || built_with == manifest::kNoCuda)
    return fmt::format(
        "the worker {} was built for PyTorch {}, without CUDA, so it runs no case on a card, "
        "emulated or real. `peakbench workers build` compiles one for PyTorch {}",
        worker.program, worker.stamp.libtorch_version, torch->version);
  return emulated ? emulator::why_torch_cannot_work(*torch, emulator::find_installation())
                        .value_or(std::string())
                  : "";
}

}  // namespace peakbench::launch
