#include "core/shared_cards.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace peakbench::emulator {
namespace {

constexpr std::uint64_t kMagic = 0x3253445241434250;  // "PBCARDS2"

void drop(SharedCards& cards, SharedProcess& process) {
  for (int card = 0; card < kMaxDevices; ++card)
    cards.used_bytes[card] -= std::min(cards.used_bytes[card], process.used_bytes[card]);
  process = {};
}

void drop_the_ended(SharedCards& cards) {
  for (SharedProcess& process : cards.processes)
    if (process.pid && start_of(process.pid) != process.started) drop(cards, process);
}

void add_up(SharedCards& cards) {
  for (int card = 0; card < kMaxDevices; ++card) {
    cards.used_bytes[card] = 0;
    for (const SharedProcess& process : cards.processes)
      cards.used_bytes[card] += process.used_bytes[card];
  }
}

std::uint64_t holders_of(const SharedCards& cards, int card) {
  return std::ranges::count_if(
      cards.processes, [&](const SharedProcess& process) { return process.used_bytes[card] > 0; });
}

class Locked {
 public:
  explicit Locked(SharedCards& cards) : cards_(cards) {
    if (pthread_mutex_lock(&cards.mutex) != EOWNERDEAD) return;
    // Who held it died while it changed the figures.
    add_up(cards);
    pthread_mutex_consistent(&cards.mutex);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
  ~Locked() { pthread_mutex_unlock(&cards_.mutex); }

 private:
  SharedCards& cards_;
};

SharedCards* map(int file) {
  void* at = mmap(nullptr, sizeof(SharedCards), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return at == MAP_FAILED ? nullptr : static_cast<SharedCards*>(at);
}

}  // namespace

std::uint64_t start_of(std::int32_t pid) {
  char path[32], text[1024];
  std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t got = read(file, text, sizeof text - 1);
  close(file);
  text[std::max<ssize_t>(got, 0)] = 0;
  // The name may hold anything; after it come the state and, 19 fields later, the start.
  const char* at = std::strrchr(text, ')');
  char state = 'X';
  unsigned long long started = 0;
  if (!at || std::sscanf(at + 1,
                         " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                         "%*s %llu",
                         &state, &started) != 2)
    return 0;
  return state == 'Z' || state == 'X' ? 0 : started;
}

bool make_shared_cards(const std::string& path) {
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (file < 0) return false;
  SharedCards* cards = ftruncate(file, sizeof(SharedCards)) == 0 ? map(file) : nullptr;
  if (!cards) return false;
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&cards->mutex, &attributes);
  cards->magic = kMagic;
  munmap(cards, sizeof *cards);
  return true;
}

SharedCards* map_shared_cards(const std::string& path) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  SharedCards* cards = map(file);
  return cards && cards->magic == kMagic ? cards : nullptr;
}

std::uint64_t used_of_card(SharedCards& cards, int card, std::vector<CardUser>& users) {
  const Locked locked(cards);
  drop_the_ended(cards);
  for (const SharedProcess& process : cards.processes)
    if (process.pid && process.used_bytes[card])
      users.push_back({process.pid, process.used_bytes[card]});
  return cards.used_bytes[card];
}

CardShare::CardShare(SharedCards& cards) : cards_(cards) {
  const Locked locked(cards_);
  drop_the_ended(cards_);
  const auto pid = getpid();
  // The program that this process was before (exec) is gone.
  for (SharedProcess& process : cards_.processes)
    if (process.pid == pid) drop(cards_, process);
  for (SharedProcess& process : cards_.processes) {
    if (process.pid) continue;
    process.pid = pid;
    process.started = start_of(pid);
    own_ = &process;
    return;
  }
}

bool CardShare::take(int card, std::uint64_t bytes, std::uint64_t context, std::uint64_t total) {
  const Locked locked(cards_);
  if (!own_) return true;
  std::uint64_t& used = cards_.used_bytes[card];
  const auto wanted = bytes + (own_->used_bytes[card] ? 0 : context);
  // Before a peak is raised or somebody refused, nothing of the dead may count.
  if (used + wanted > std::min(cards_.peaks[card].bytes, total)) drop_the_ended(cards_);
  if (wanted > total || used > total - wanted) return false;
  used += wanted;
  own_->used_bytes[card] += wanted;
  if (used > cards_.peaks[card].bytes) cards_.peaks[card] = {used, holders_of(cards_, card)};
  return true;
}

void CardShare::give(int card, std::uint64_t bytes) {
  const Locked locked(cards_);
  if (!own_) return;
  own_->used_bytes[card] -= bytes;
  cards_.used_bytes[card] -= bytes;
}

std::uint64_t CardShare::used(int card, std::uint64_t context) {
  const Locked locked(cards_);
  drop_the_ended(cards_);
  return cards_.used_bytes[card] + (own_ && own_->used_bytes[card] ? 0 : context);
}

void CardShare::leave() {
  const Locked locked(cards_);
  if (own_) drop(cards_, *own_);
  own_ = nullptr;
}

}  // namespace peakbench::emulator
