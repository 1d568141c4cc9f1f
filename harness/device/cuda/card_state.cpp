#include "device/cuda/card_state.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <optional>
#include <string>

namespace peakbench::device {
namespace {

// NVML's interface has no header here: it comes with the toolkit or the driver's own packages.
// These are its documented signatures and numbers (nvml.h, stable since NVML 2).
using Card = void*;
constexpr int kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureOfGpu = 0;

class Nvml {
 public:
  Nvml() : library_(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    usable_ = call<>("nvmlInit_v2");
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml() {
    if (usable_) call<>("nvmlShutdown");
    if (library_ != nullptr) ::dlclose(library_);
  }

  // True when there is such a function and it succeeded.
  template <typename... Arguments>
  bool call(const char* name, Arguments... arguments) const {
    if (library_ == nullptr) return false;
    const auto function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library_, name));
    return function != nullptr && function(arguments...) == kSuccess;
  }

  std::optional<Card> card(const std::string& bus_id) const {
    Card card = nullptr;
    if (!call("nvmlDeviceGetHandleByPciBusId_v2", bus_id.c_str(), &card)) return std::nullopt;
    return card;
  }

 private:
  void* library_;
  bool usable_ = false;
};

void add_numbers(const Nvml& nvml, Card card, nlohmann::json& state) {
  unsigned value = 0;
  if (nvml.call("nvmlDeviceGetClockInfo", card, kClockSm, &value)) state["sm_clock_mhz"] = value;
  if (nvml.call("nvmlDeviceGetClockInfo", card, kClockMemory, &value))
    state["memory_clock_mhz"] = value;
  if (nvml.call("nvmlDeviceGetTemperature", card, kTemperatureOfGpu, &value))
    state["temperature_celsius"] = value;
  constexpr unsigned kMilliwattsPerWatt = 1000;
  if (nvml.call("nvmlDeviceGetEnforcedPowerLimit", card, &value))
    state["power_limit_watts"] = value / kMilliwattsPerWatt;
  int power_state = 0;
  if (nvml.call("nvmlDeviceGetPowerState", card, &power_state))
    state["power_state"] = "P" + std::to_string(power_state);
}

}  // namespace

nlohmann::json card_state(int index) {
  nlohmann::json state = nlohmann::json::object();
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) != cudaSuccess) return state;
  const Nvml nvml;
  char version[96] = {};
  if (nvml.call("nvmlSystemGetDriverVersion", static_cast<char*>(version),
                static_cast<unsigned>(sizeof version)))
    state["driver_version"] = version;
  if (const auto card = nvml.card(bus_id)) add_numbers(nvml, *card, state);
  return state;
}

}  // namespace peakbench::device
