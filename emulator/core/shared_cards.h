// The memory of the cards that all processes of one `peakbench emulate` share: a file that each of
// them maps. The launcher creates it and reads it at the end (host); the stub libraries update it.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/card.h"

namespace peakbench::emulator {

inline constexpr int kSharedProcesses = 1024;

struct SharedProcess {
  std::int32_t pid;                       // 0: a free row
  std::uint64_t started;                  // see start_of
  std::uint64_t used_bytes[kMaxDevices];  // by card, its context included
};

// The most that all processes together took of a card, their contexts included, and how many of
// them held memory of it then.
struct SharedPeak {
  std::uint64_t bytes = 0, processes = 0;
};

struct SharedCards {
  std::uint64_t magic;
  pthread_mutex_t mutex;                  // survives the death of its owner
  std::uint64_t used_bytes[kMaxDevices];  // of all processes together
  SharedPeak peaks[kMaxDevices];
  SharedProcess processes[kSharedProcesses];
};

// The file's name in the folder of the ledgers.
inline constexpr const char* kSharedCardsFile = "cards.shared";

// When a process was started, which tells it from a later one with its number; 0: it has ended.
std::uint64_t start_of(std::int32_t pid);

// Makes the file; false when it cannot be had.
bool make_shared_cards(const std::string& path);
// Null if it does not exist; mapped for the life of the process.
SharedCards* map_shared_cards(const std::string& path);

// What all processes together have taken of a card; `users` become those that have taken any.
struct CardUser {
  std::int32_t pid;
  std::uint64_t used_bytes;
};
std::uint64_t used_of_card(SharedCards& cards, int card, std::vector<CardUser>& users);

// What this process takes of the cards. The processes that have ended are seen to have given
// everything back.
class CardShare {
 public:
  explicit CardShare(SharedCards& cards);
  CardShare(const CardShare&) = delete;
  CardShare& operator=(const CardShare&) = delete;
  // False when the card has not so much left. The first one takes `context` besides.
  bool take(int card, std::uint64_t bytes, std::uint64_t context, std::uint64_t total);
  void give(int card, std::uint64_t bytes);
  // Of all processes, and this one's context in any case.
  std::uint64_t used(int card, std::uint64_t context);
  // The end of the process: nothing of it is counted from now on.
  void leave();

 private:
  SharedCards& cards_;
  SharedProcess* own_ = nullptr;
};

}  // namespace peakbench::emulator
