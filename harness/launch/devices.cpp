#include "launch/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "base/errors.h"
#include "base/nearest.h"
#include "base/numbers.h"
#include "emulator/host/card.h"
#include "launch/machine.h"
#include "launch/run_folder.h"
#include "launch/worker_environment.h"
#include "planning/plan.h"
#include "records/device.h"

namespace peakbench::launch {
namespace {

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb ..." -> 550.54.14
std::string version_in(const std::string& line) {
  static const std::regex version(R"((?:^|\s)(\d+\.\d+(?:\.\d+)?)(?:\s|$))");
  std::smatch found;
  return std::regex_search(line, found, version) ? found[1].str() : "";
}

// NVIDIA, "CUDA Compatibility": the first driver branch of each CUDA major version.
int first_branch_of(int cuda_major) { return cuda_major >= 13 ? 580 : cuda_major == 12 ? 525 : 0; }

}  // namespace

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
  models.reserve(found.size());
  for (const auto& path : found) models.push_back(card_model(path / "information"));
  return models;
}

std::string cpu_title() {
  const auto environment = launch::host_environment(planning::Plan{});
  const auto memory = launch::host_memory();
  return fmt::format("{}, {} logical cores, {} of memory, {} available",
                     environment.at("cpu").get<std::string>(),
                     environment.at("logical_cores").get<std::int64_t>(),
                     gib_text(memory.total_bytes), gib_text(memory.available_bytes));
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
    for (const auto& card : emulator::list_cards(emulator::find_installation()))
      found.push_back({records::emulated_device(card.id), card.title, card.total_memory_bytes,
                       card.compute_capability, card.served ? "" : card.reason,
                       card.context_memory});
  } catch (const ConfigError&) {  // not installed: `doctor` says so
  }
  return found;
}

namespace {

std::vector<std::string> cards_of_this_machine() {
  std::vector<std::string> ids;
  for (const auto& device : devices_of_this_machine())
    if (records::device_from(device.id).is_card) ids.push_back(device.id);
  return ids;
}

// Memory on an emulated card, times on the CPU.
std::vector<std::string> without_a_card(const std::string& card) {
  const auto emulated = records::emulated_device(card.empty() ? kDefaultCard : card);
  return {planning::normal_device(emulated), records::device_from("cpu").id};
}

// Throws ConfigError for an emulated card that is unknown (the nearest named), has no sensible
// memory, or that this LibTorch has no code for.
void check_emulated(const records::Device& device, const planning::Worker& worker) {
  emulator::parse_card(records::card_text(device), launch::installation_for(worker));
}

void check_libtorch(const records::Device& device, const planning::Worker& worker) {
  if (const auto why = launch::why_not_with(worker, device); !why.empty())
    throw ConfigError(fmt::format("device \"{}\": {}", device.id, why));
}

// A name like one of a device is left to the plan, which names that.
void refuse_if_a_cards(const std::string& name) {
  if (planning::is_device(name) || nearest(name, records::device_examples())) return;
  if (const auto card = emulator::nearest_card(name, emulator::find_installation()); !card.empty())
    throw ConfigError(fmt::format("unknown device \"{}\"; did you mean the emulated card, \"{}\"?",
                                  name, records::emulated_device(card)));
}

// `real`: the cards of this machine, of any kind.
void check_card(const records::Device& device, const std::vector<std::string>& real) {
  if (std::ranges::find(real, device.id) != real.end()) return;
  const auto count = std::ranges::count_if(
      real, [&](const std::string& id) { return records::device_from(id).kind == device.kind; });
  const std::string here =
      count == 0   ? fmt::format("this machine has no {} that its driver shows", device.title)
      : count == 1 ? fmt::format("this machine has one {}, {}", device.title, device.example)
                   : fmt::format("this machine has {} {}s", count, device.title);
  throw ConfigError(fmt::format(
      "device \"{}\": {}. For memory without a card: --device {}. `peakbench list devices` shows "
      "what there is, `peakbench doctor` what is missing.",
      device.id, here, records::emulated_device(kDefaultCard)));
}

}  // namespace

planning::DeviceHook device_hook(const std::string& card, const planning::Worker& worker) {
  return [card, worker](const std::string& asked) -> std::vector<std::string> {
    refuse_if_a_cards(asked);
    const auto real = cards_of_this_machine();
    std::vector<std::string> devices{asked};
    if (asked == "auto") devices = real.empty() ? without_a_card(card) : real;
    for (const auto& id : devices) {
      const auto device = records::device_from(id);
      check_libtorch(device, worker);
      if (device.kind == records::DeviceKind::kEmulated) check_emulated(device, worker);
      if (device.is_card) check_card(device, real);
    }
    return devices;
  };
}

planning::DeviceHook device_hook_for_others(const planning::Worker& worker) {
  return [worker](const std::string& asked) -> std::vector<std::string> {
    if (asked == "auto")
      throw ConfigError(
          "device \"auto\": the cards of the machines that a scheduler gives are not known here. "
          "Name the device: --device cuda:0, cpu, or an emulated card.");
    refuse_if_a_cards(asked);
    const auto device = records::device_from(asked);
    check_libtorch(device, worker);
    if (device.kind == records::DeviceKind::kEmulated) check_emulated(device, worker);
    return {asked};
  };
}

}  // namespace peakbench::launch
