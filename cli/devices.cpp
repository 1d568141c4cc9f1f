#include "cli/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "errors/errors.h"
#include "host/card.h"
#include "launch/host.h"
#include "reports/format.h"
#include "result/device.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

// What NVIDIA's driver says of a card, without loading any library of it.
std::string card_model(const fs::path& information) {
  std::ifstream file(information);
  for (std::string line; std::getline(file, line);)
    if (line.rfind("Model:", 0) == 0) return line.substr(line.find_first_not_of(" \t", 6));
  return "a CUDA card";
}

std::vector<std::string> cards() {
  const fs::path folder = "/proc/driver/nvidia/gpus";
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());  // by bus, as CUDA numbers them with PCI_BUS_ID
  std::vector<std::string> models;
  for (const auto& path : found) models.push_back(card_model(path / "information"));
  return models;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb ..." -> 550.54.14
std::string version_in(const std::string& line) {
  static const std::regex version(R"((?:^|\s)(\d+\.\d+(?:\.\d+)?)(?:\s|$))");
  std::smatch found;
  return std::regex_search(line, found, version) ? found[1].str() : "";
}

// NVIDIA, "CUDA Compatibility": the first driver branch of each CUDA major version.
int first_branch_of(int cuda_major) { return cuda_major >= 13 ? 580 : cuda_major == 12 ? 525 : 0; }

std::string cpu_title() {
  const auto environment = launch::host_environment();
  const auto memory = launch::host_memory();
  return fmt::format("{}, {} logical cores, {} GiB of memory, {} GiB available",
                     environment.at("cpu").get<std::string>(),
                     environment.at("logical_cores").get<std::int64_t>(),
                     reports::gib(memory.total_bytes), reports::gib(memory.available_bytes));
}

}  // namespace

std::vector<DeviceFound> devices_of_this_machine() {
  std::vector<DeviceFound> found{{"cpu", cpu_title()}};
  const auto models = cards();
  for (std::size_t i = 0; i < models.size(); ++i)
    found.push_back({fmt::format("cuda:{}", i), models[i]});
  return found;
}

std::vector<DeviceFound> emulated_devices() {
  std::vector<DeviceFound> found;
  try {
    for (const auto& card : emulator::list_cards(emulator::find_installation())) {
      auto title = fmt::format("{}, {} GiB, compute capability {}", card.title,
                               reports::gib(static_cast<std::int64_t>(card.total_memory_bytes)),
                               card.compute_capability);
      if (!card.served) title += ": refused, " + card.reason;
      found.push_back({result::emulated_device(card.id), std::move(title), card.served});
    }
  } catch (const ConfigError&) {  // not installed: `doctor` says so
  }
  return found;
}

DriverFound driver_for(const std::string& version_line, const std::string& libtorch_cuda) {
  DriverFound found;
  found.version = version_in(version_line);
  if (found.version.empty()) return found;
  const int needed = first_branch_of(std::atoi(libtorch_cuda.c_str()));
  if (std::atoi(found.version.c_str()) < needed)
    found.problem = fmt::format(
        "LibTorch is built for CUDA {}, which needs a driver of branch {} or later: update the "
        "driver, or set PEAKBENCH_TORCH_DIR to a LibTorch for an older CUDA",
        libtorch_cuda, needed);
  return found;
}

DriverFound driver_of_this_machine(const std::string& libtorch_cuda) {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  return driver_for(line, libtorch_cuda);
}

namespace {

constexpr const char* kDefaultCard = "h100-80gb";

std::vector<std::string> cards_of_this_machine() {
  std::vector<std::string> ids;
  for (const auto& device : devices_of_this_machine())
    if (result::device_from(device.id).is_card) ids.push_back(device.id);
  return ids;
}

// Memory on an emulated card, times on the CPU.
std::vector<std::string> without_a_card(const std::string& card) {
  const auto emulated = result::emulated_device(card.empty() ? kDefaultCard : card);
  return {plan::normal_device(emulated), result::device_from("cpu").id};
}

// Throws ConfigError for an emulated card that is unknown (the nearest named), has no sensible
// memory, or that this LibTorch has no code for.
void check_emulated(const result::Device& device) {
  emulator::parse_card(result::card_text(device), emulator::find_installation());
}

[[noreturn]] void refuse_card(const std::string& device, std::size_t count) {
  const std::string here = count == 0   ? "this machine has no CUDA card that its driver shows"
                           : count == 1 ? "this machine has one CUDA card, cuda:0"
                                        : fmt::format("this machine has {} CUDA cards", count);
  throw ConfigError(fmt::format(
      "device \"{}\": {}. For memory without a card: --device emulated:h100-80gb. `peakbench "
      "list devices` shows what there is, `peakbench doctor` what is missing.",
      device, here));
}

}  // namespace

plan::DeviceHook device_hook(const std::string& card) {
  return [card](const std::string& asked) -> std::vector<std::string> {
    const auto real = cards_of_this_machine();
    std::vector<std::string> devices{asked};
    if (asked == "auto") devices = real.empty() ? without_a_card(card) : real;
    for (const auto& id : devices) {
      const auto device = result::device_from(id);
      if (device.kind == result::DeviceKind::kEmulated) check_emulated(device);
      if (device.is_card && std::ranges::find(real, id) == real.end()) refuse_card(id, real.size());
    }
    return devices;
  };
}

}  // namespace peakbench::cli
