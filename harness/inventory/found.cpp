#include "inventory/found.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "errors/errors.h"
#include "host/card.h"
#include "launch/environment.h"
#include "launch/host.h"
#include "plan/plan.h"
#include "result/device.h"
#include "units/bytes.h"

namespace peakbench::inventory {
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
  const auto environment = launch::host_environment(plan::Plan{});
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
      found.push_back({result::emulated_device(card.id), card.title, card.total_memory_bytes,
                       card.compute_capability, card.served ? "" : card.reason,
                       card.context_memory});
  } catch (const ConfigError&) {  // not installed: `doctor` says so
  }
  return found;
}

}  // namespace peakbench::inventory
