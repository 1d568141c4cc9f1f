#include "launch/device_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "errors/errors.h"
#include "host/environment.h"
#include "host/values_environment.h"
#include "host/values_library.h"
#include "launch/worker_torch.h"
#include "pytorch/torch_release.h"

namespace peakbench::launch {
namespace {

namespace fs = std::filesystem;

// Goes before the run paths of the worker and of its libraries.
process::Environment to_find_libtorch(const manifest::Worker& worker) {
  if (worker.torch.folder.empty()) return {};
  const auto folder = (fs::path(worker.torch.folder) / "lib").string();
  if (folder.find_first_of(":;") != std::string::npos)
    throw ConfigError(fmt::format(
        "{}: the dynamic loader cannot be told of a folder with ':' or ';' in its name; rename it",
        folder));
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return {{"LD_LIBRARY_PATH", folder + (before && *before ? std::string(":") + before : "")},
          {manifest::kLibtorchVariable, manifest::libtorch_text(worker)}};
}

int cuda_major(const std::string& version) { return pytorch::cuda_number(version) / 1000; }

// The worker's own library does for every build of its release that has the same CUDA; for others
// one is compiled.
pytorch::LibraryInUse values_for(const manifest::Worker& worker,
                                 const emulator::Installation& installation) {
  if (!worker.values.empty() &&
      cuda_major(worker.stamp.libtorch_cuda) == cuda_major(manifest::libtorch_cuda(worker)))
    return {worker.values, manifest::libtorch_version(worker), ""};
  return emulator::values_library_for(torch_of(worker), installation, [] { return false; });
}

void append(process::Environment& environment, process::Environment more) {
  std::ranges::move(more, std::back_inserter(environment));
}

}  // namespace

process::Environment environment_for(const result::Device& device, const manifest::Worker& worker,
                                     const Emulated& how) {
  auto environment = to_find_libtorch(worker);
  if (const auto why = why_not_with(worker, device); !why.empty()) throw ConfigError(why);
  if (device.kind != result::DeviceKind::kEmulated) return environment;
  const auto installation = installation_for(worker);
  auto card = emulator::parse_card(result::card_text(device), installation);
  if (!how.limited) emulator::take_limit_away(card);
  append(environment, emulator::emulation_environment(card, installation, ""));
  if (how.values)
    append(environment,
           emulator::values_environment({.compute = true, .assume = how.assume},
                                        values_for(worker, emulator::find_installation())));
  return environment;
}

}  // namespace peakbench::launch
