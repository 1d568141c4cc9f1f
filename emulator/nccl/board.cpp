#include "nccl/board.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "core/card.h"
#include "core/shared_cards.h"

namespace peakbench::emulator::nccl {
namespace {

bool has_variable(const std::string& environment, const std::string& variable) {
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    if (std::strcmp(environment.c_str() + at, variable.c_str()) == 0) return true;
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return false;
}

std::string read_environment(const char* pid) {
  const int file = open((std::string("/proc/") + pid + "/environ").c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  char piece[4096];
  for (ssize_t got = 1; file >= 0 && (got = read(file, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(got));
  if (file >= 0) close(file);
  return text;
}

}  // namespace

bool others_in_program() {
  const char* folder = std::getenv(kSharedVariable);
  if (!folder || !*folder) return false;
  const std::string variable = std::string(kSharedVariable) + "=" + folder;
  const std::string own = std::to_string(getpid());
  DIR* processes = opendir("/proc");
  bool found = false;
  while (const dirent* entry = processes && !found ? readdir(processes) : nullptr) {
    const bool number = std::all_of(entry->d_name, entry->d_name + std::strlen(entry->d_name),
                                    [](char c) { return c >= '0' && c <= '9'; });
    found =
        number && own != entry->d_name && has_variable(read_environment(entry->d_name), variable);
  }
  if (processes) closedir(processes);
  return found;
}

namespace {

// Files of a process that shares nothing: ranks that are its threads find each other by name.
int private_file(const std::string& name) {
  static auto* const mutex = new std::mutex;
  static auto* const files = new std::map<std::string, int>;
  const std::lock_guard lock(*mutex);
  auto& file = files->try_emplace(name, -1).first->second;
  if (file < 0) file = memfd_create(name.c_str(), MFD_CLOEXEC);
  return file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 0);
}

int shared_file(const std::string& name) {
  const char* folder = std::getenv(kSharedVariable);
  if (!folder || !*folder) return private_file(name);
  return ::open((std::string(folder) + "/" + name).c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
}

bool write_all(int file, const void* bytes, std::uint64_t count, std::uint64_t at) {
  const auto* from = static_cast<const char*>(bytes);
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t wrote = pwrite(file, from + done, count - done, static_cast<off_t>(at + done));
    if (wrote <= 0) return false;
    done += static_cast<std::uint64_t>(wrote);
  }
  return true;
}

bool read_all(int file, void* bytes, std::uint64_t count, std::uint64_t at) {
  auto* to = static_cast<char*>(bytes);
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t got = pread(file, to + done, count - done, static_cast<off_t>(at + done));
    if (got <= 0) return false;
    done += static_cast<std::uint64_t>(got);
  }
  return true;
}

struct Head {
  std::atomic<std::uint64_t> ranks;
};
// Seats begin on a line of their own.
constexpr std::size_t kHeadBytes = 64;

}  // namespace

Board::Board(std::string name, int ranks)
    : name_(std::move(name)), ranks_(ranks), logs_(static_cast<std::size_t>(ranks)) {
  for (auto& log : logs_) log = -1;
}

Board::~Board() {
  if (seats_) munmap(reinterpret_cast<char*>(seats_) - kHeadBytes, mapped_bytes_);
  for (const auto& log : logs_)
    if (log >= 0) close(log);
}

std::unique_ptr<Board> Board::open(const std::string& name, int ranks) {
  std::unique_ptr<Board> board(new Board(name, ranks));
  const int file = shared_file(name);
  if (file < 0) return nullptr;
  const auto bytes = kHeadBytes + static_cast<std::size_t>(ranks) * sizeof(Seat);
  // Whoever comes first makes it; it begins as zeros. It never shrinks.
  struct stat now {};
  void* at = MAP_FAILED;
  if (fstat(file, &now) == 0 &&
      (now.st_size >= static_cast<off_t>(bytes) || ftruncate(file, static_cast<off_t>(bytes)) == 0))
    at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) return nullptr;
  board->mapped_bytes_ = bytes;
  board->seats_ = reinterpret_cast<Seat*>(static_cast<char*>(at) + kHeadBytes);
  std::uint64_t expected = 0;
  auto& said = static_cast<Head*>(at)->ranks;
  const auto wanted = static_cast<std::uint64_t>(ranks);
  if (!said.compare_exchange_strong(expected, wanted) && expected != wanted) return nullptr;
  return board;
}

int Board::log_of(int rank) {
  auto& log = logs_[static_cast<std::size_t>(rank)];
  if (log >= 0) return log;
  const int file = shared_file(name_ + "." + std::to_string(rank));
  int none = -1;
  if (file >= 0 && !log.compare_exchange_strong(none, file)) close(file);
  return log;
}

bool Board::join(int rank, int card) {
  Seat& seat = seats_[rank];
  auto none = Presence::none;
  if (log_of(rank) < 0) return false;
  if (seat.presence != Presence::none) return false;
  seat.pid = getpid();
  seat.started = start_of(seat.pid);
  seat.card = card;
  return seat.presence.compare_exchange_strong(none, Presence::joined);
}

bool Board::post(int rank, const Record& record, const void* bytes, bool collective) {
  Seat& seat = seats_[rank];
  const int log = log_of(rank);
  const auto at = seat.log_bytes.load(std::memory_order_relaxed);
  if (!write_all(log, &record, sizeof record, at) ||
      !write_all(log, bytes, record.sent, at + sizeof record))
    return false;
  seat.log_bytes.store(at + sizeof record + record.sent, std::memory_order_release);
  if (collective) seat.collectives.fetch_add(1, std::memory_order_release);
  return true;
}

bool Board::read(int rank, std::uint64_t at, void* to, std::uint64_t bytes) {
  if (at + bytes > seats_[rank].log_bytes.load(std::memory_order_acquire)) return false;
  const int log = log_of(rank);
  return log >= 0 && read_all(log, to, bytes, at);
}

}  // namespace peakbench::emulator::nccl
