#include "core/state.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace peakbench::emulator {
namespace {

std::atomic<State*> made{nullptr};
std::atomic<bool> forked{false};
thread_local int device_of_thread = 0;

void after_fork_in_child() {
  State* state = made.load();
  if (!state) return;  // the child may use CUDA afresh
  forked = true;
  detach_ledger(state->ledger);
}

// CUDA_VISIBLE_DEVICES names the devices that a program sees, up to the first that there is not.
// They are all alike, so their number is all that matters.
int visible_devices(int count) {
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!list) return count;
  int visible = 0;
  for (const char* at = list; *at && visible < count;) {
    const bool by_name = std::strncmp(at, "GPU-", 4) == 0;
    char* end = nullptr;
    const long index = std::strtol(at, &end, 10);
    if (!by_name && (end == at || index < 0 || index >= count)) break;
    ++visible;
    at += std::strcspn(at, ",");
    if (*at == ',') ++at;
  }
  return visible;
}

State* make_state() {
  auto* state = new State;
  if (const char* text = std::getenv(kCardVariable); text && *text) {
    try {
      state->card = card_from_json(text);
      state->card.count = visible_devices(state->card.count);
      state->has_card = state->card.count > 0;
    } catch (const std::invalid_argument& error) {
      std::fprintf(stderr, "peakbench emulator: %s is not understood (%s): there is no card\n",
                   kCardVariable, error.what());
    }
  }
  state->ledger = open_ledger(state->card, state->has_card ? state->card.count : 0);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return state;
}

}  // namespace

State& state() {
  static State* const state = [] {
    State* fresh = make_state();
    made = fresh;
    return fresh;
  }();
  return *state;
}

bool machine_state_made() { return made.load() != nullptr; }

MachineState machine_state() {
  if (forked.load(std::memory_order_relaxed)) return MachineState::forked;
  return state().has_card ? MachineState::ready : MachineState::no_card;
}

int driver_cuda_version() {
  if (!state().has_card) return 0;
  if (card().driver_cuda_version) return card().driver_cuda_version;
  return std::max(PEAKBENCH_CUDA_VERSION, cuda_version());
}

const CardFacts& card() { return state().card; }

int device_count() { return machine_state() == MachineState::ready ? card().count : 0; }

int current_device() { return device_of_thread; }
void set_current_device(int device) { device_of_thread = device; }

void device_uuid(int device, unsigned char* out) {
  constexpr std::string_view kName = "peakbench-emul-";
  std::copy(kName.begin(), kName.end(), out);
  out[kName.size()] = static_cast<unsigned char>(device);
}

int cuda_version() { return card().cuda_version ? card().cuda_version : PEAKBENCH_CUDA_VERSION; }

int cuda_version(int major) {
  constexpr int kLastOf12 = 12090;
  if (cuda_version() / 1000 == major) return cuda_version();
  return major == 12 ? kLastOf12 : PEAKBENCH_CUDA_VERSION;
}

Ledger& ledger() { return *state().ledger; }

}  // namespace peakbench::emulator
