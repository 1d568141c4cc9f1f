#include "core/state.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "core/uuid.h"

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
  static_cast<void>(state->share.release());  // the parent's
}

// The card that an entry of CUDA_VISIBLE_DEVICES names; -1: none.
int card_named(const std::string& name, int count) {
  int found = -1;
  if (name.starts_with("GPU-")) {
    for (int card = 0; card < count; ++card)
      if (uuid_text(card).starts_with(name)) found = found < 0 ? card : count;
    return found < count ? found : -1;  // the beginning of several names none
  }
  char* end = nullptr;
  const long index = std::strtol(name.c_str(), &end, 10);
  return end != name.c_str() && index >= 0 && index < count ? static_cast<int>(index) : -1;
}

// CUDA_VISIBLE_DEVICES names the cards that a program sees, in its order, up to the first that
// there is not.
std::vector<int> visible_cards(int count) {
  std::vector<int> cards;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int card = 0; !list && card < count; ++card) cards.push_back(card);
  for (const char* at = list; at && *at;) {
    const auto length = std::strcspn(at, ",");
    const int card = card_named(std::string(at, length), count);
    if (card < 0 || std::ranges::find(cards, card) != cards.end()) break;
    cards.push_back(card);
    at += length + (at[length] == ',');
  }
  return cards;
}

// The folder is the launcher's of this very program: whoever starts emulated programs of its own
// (`peakbench run`) clears the variable.
std::unique_ptr<CardShare> share_cards() {
  const char* folder = std::getenv(kSharedVariable);
  if (!folder || !*folder) return nullptr;
  SharedCards* cards = map_shared_cards(std::string(folder) + "/" + kSharedCardsFile);
  if (cards) return std::make_unique<CardShare>(*cards);
  std::fprintf(stderr, "peakbench emulator: cannot use %s/%s: this process has cards of its own\n",
               folder, kSharedCardsFile);
  return nullptr;
}

State* make_state() {
  auto* state = new State;
  if (const char* text = std::getenv(kCardVariable); text && *text) {
    try {
      state->card = card_from_json(text);
      state->cards = visible_cards(state->card.count);
      state->card.count = static_cast<int>(state->cards.size());
      state->has_card = state->card.count > 0;
    } catch (const std::invalid_argument& error) {
      std::fprintf(stderr, "peakbench emulator: %s is not understood (%s): there is no card\n",
                   kCardVariable, error.what());
    }
  }
  state->ledger = open_ledger(state->card, state->has_card ? state->card.count : 0);
  for (std::size_t i = 0; i < state->cards.size(); ++i)
    state->ledger->devices[i].card = static_cast<std::uint64_t>(state->cards[i]);
  if (state->has_card) state->share = share_cards();
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return state;
}

// Everything that a thread asks of the card comes through here, with the lock and without.
void delay_at_random() {
  static const char* const seed = std::getenv(kDelaysVariable);
  if (!seed) [[likely]]
    return;
  static std::atomic<unsigned> threads{0};
  thread_local std::minstd_rand random(
      static_cast<unsigned>(std::strtoul(seed, nullptr, 10) * 7919 + ++threads));
  constexpr unsigned kOneOf = 8, kMostMicroseconds = 400;
  if (random() % kOneOf == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(random() % kMostMicroseconds));
}

}  // namespace

State& state() {
  delay_at_random();
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
  const auto& cards = state().cards;
  const auto at = static_cast<std::size_t>(device);
  uuid_of_card(at < cards.size() ? cards[at] : device, out);
}

int cuda_version() { return card().cuda_version ? card().cuda_version : PEAKBENCH_CUDA_VERSION; }

int cuda_version(int major) {
  constexpr int kLastOf12 = 12090;
  if (cuda_version() / 1000 == major) return cuda_version();
  return major == 12 ? kLastOf12 : PEAKBENCH_CUDA_VERSION;
}

Ledger& ledger() { return *state().ledger; }

}  // namespace peakbench::emulator
