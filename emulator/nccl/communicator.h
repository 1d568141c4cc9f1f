#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/exchange.h"
#include "core/facts.h"
#include "nccl/board.h"

namespace peakbench::emulator::nccl {

// A communicator of one rank: its entry on the board, its calls, and the calls of other ranks.
//
// A call posts this rank's data and returns at once, as NCCL's do. The host waits for the other
// ranks' data when it reads them, or when it waits for the stream.

// ncclResult_t
constexpr int kInvalidArgument = 4;
constexpr int kInvalidUsage = 5;
constexpr int kRemoteError = 6;

using Call = NcclCall;

// What a rank gave to a call.
struct Posted {
  Record record{};
  std::string bytes;
  bool is_there() const { return record.standing != kPeakbenchUnknown; }
};

class Communicator : public std::enable_shared_from_this<Communicator> {
 public:
  // A rank that meets the others at the board `name`; or, without a name, one that is alone.
  static std::shared_ptr<Communicator> create(const std::string& name, int ranks, int rank,
                                              int device, std::string* problem);

  std::uint64_t id() const { return id_; }
  int ranks() const { return ranks_; }
  int rank() const { return rank_; }
  int device() const { return device_; }
  const std::string& name() const { return name_; }
  // The other ranks are assumed to be like this one: they do not exist, or are not of this program.
  bool alone() const { return alone_; }
  // The number of ranks is unknown: made by a split when alone.
  bool ranks_unknown() const { return ranks_unknown_; }
  void forget_ranks() { ranks_unknown_ = true; }

  // Says that this rank calls; `bytes` are what it gives. The number of the call, from 1.
  std::uint64_t post(Call call, int peer, int type, std::uint64_t about, Standing standing,
                     const std::string& bytes);
  // The number of the next receive from a rank, from 1.
  std::uint64_t receive_from(int peer);

  // What a rank gave to a collective, or sent to this one. Waits for it; false when there is
  // nothing to come: the communicator has an error then, or is alone.
  bool posted_by(int rank, std::uint64_t sequence, Call expected, std::uint64_t about, Posted& out);
  bool sent_by(int rank, std::uint64_t sequence, std::uint64_t about, Posted& out);

  bool is_done(const Ticket& ticket);
  void wait(const Ticket& ticket);

  // 0, or why nothing works any more.
  int error() const { return error_; }
  int fail(int error, const std::string& text);
  void leave();

 private:
  struct Calls {  // where a rank's records begin in its log, in the order of its calls
    std::uint64_t parsed = 0;
    std::vector<std::uint64_t> collectives, sent_here;
  };

  bool parse(int rank);  // false when there was nothing new
  bool has(int rank, bool sent, std::uint64_t sequence);
  // The call of that number in one of the lists.
  bool read_posted(int rank, std::vector<std::uint64_t> Calls::*list, std::uint64_t sequence,
                   Posted& out);
  bool wait_until(int rank, const std::function<bool()>& ready, const char* what);
  // Why a rank will never call again; empty while it may.
  std::string why_gone(int rank);
  bool take_seat(std::string* problem);
  void become_alone();
  void say_how_to_be_alone() const;
  bool nobody_came();

  std::uint64_t id_ = 0;
  std::string name_;
  int ranks_ = 1, rank_ = 0, device_ = 0;
  std::unique_ptr<Board> board_;
  std::atomic<bool> alone_{false}, left_{false};
  bool ranks_unknown_ = false;
  std::atomic<int> error_{0};
  std::mutex mutex_;  // of what follows, and of one's own log
  std::uint64_t collectives_ = 0;
  std::vector<Calls> calls_;
  std::vector<std::uint64_t> received_;  // from each rank
};
using CommunicatorPtr = std::shared_ptr<Communicator>;

// By NCCL's handle; null for none of these.
CommunicatorPtr find_communicator(void* handle);
void* handle_of(const CommunicatorPtr& communicator);
bool drop_communicator(void* handle);

// The last error of any communicator, in words.
const char* last_error();

}  // namespace peakbench::emulator::nccl
