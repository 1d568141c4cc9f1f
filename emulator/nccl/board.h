#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace peakbench::emulator::nccl {

// The other processes of the program that this one belongs to.

// Whether any other process was started under the same `peakbench emulate`: it may become a rank.
bool others_in_program();

// Where the ranks of a communicator meet: a file that each of them maps, and a log of each rank's
// calls that the others read. In the folder that the processes of a program share, or, without one,
// in this process alone.

enum class Presence : std::uint32_t { none, joined, left };

struct Seat {
  std::atomic<Presence> presence;
  std::int32_t pid;
  std::uint64_t started;  // of the process, see start_of
  std::int32_t card;
  std::atomic<std::uint64_t> collectives;  // that it has called
  std::atomic<std::uint64_t> log_bytes;    // of its log, records whole
};

// What a rank says of a call; its bytes follow.
struct Record {
  std::uint32_t call;      // Call
  std::int32_t peer;       // whom it is sent to, the root, or -1
  std::uint32_t type;      // ncclDataType_t
  std::uint32_t standing;  // PeakbenchStanding; unknown: no bytes follow
  std::uint64_t bytes;     // that the call is about
  std::uint64_t sent;      // that follow
};

class Board {
 public:
  // Null where the file cannot be had or is of another number of ranks. `name` is a file's.
  static std::unique_ptr<Board> open(const std::string& name, int ranks);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;
  ~Board();

  int ranks() const { return ranks_; }
  Seat& seat(int rank) { return seats_[rank]; }
  // False where this rank has joined before, or its log cannot be had.
  bool join(int rank, int card);
  // Appends to one's own log. False on a full disk.
  bool post(int rank, const Record& record, const void* bytes, bool collective);
  // Reads from a rank's log; false where so much is not there yet.
  bool read(int rank, std::uint64_t at, void* to, std::uint64_t bytes);

 private:
  Board(std::string name, int ranks);
  int log_of(int rank);

  std::string name_;
  int ranks_;
  Seat* seats_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::vector<std::atomic<int>> logs_;  // open files, -1: not yet
};

}  // namespace peakbench::emulator::nccl
