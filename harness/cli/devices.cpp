#include "cli/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "launch/host.h"
#include "reports/format.h"
#include "result/errors.h"

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

plan::DeviceHook device_hook() {
  return [](const std::string& device) -> std::vector<std::string> {
    std::vector<std::string> here{"cpu"};
    for (std::size_t i = 0; i < cards().size(); ++i) here.push_back(fmt::format("cuda:{}", i));
    if (device == "auto")
      return here.size() == 1 ? here : std::vector<std::string>(here.begin() + 1, here.end());
    const bool card = device.rfind("cuda:", 0) == 0;
    if (card && std::find(here.begin(), here.end(), device) == here.end())
      throw ConfigError(fmt::format(
          "device \"{}\": this machine has no such CUDA card (`peakbench list devices` shows what "
          "it has)",
          device));
    return {device};
  };
}

}  // namespace peakbench::cli
