#include "nccl/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "core/card.h"
#include "core/machine.h"
#include "core/own_ledger.h"
#include "core/shared_cards.h"
#include "core/streams.h"
#include "nccl/board.h"

namespace peakbench::emulator::nccl {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::seconds;

// With a rank that lives: longer than PyTorch's own patience with a collective, ten minutes.
constexpr long kPatience = 1800;
// Of a rank to whom nobody has come yet: while there are other processes of the program, which may
// still become ranks, or several devices, whose ranks may be threads of this one.
constexpr long kAlonePatience = 120, kThreadsPatience = 10;
constexpr seconds kHintAfter(5);

// Nobody ever came to this process's communicators: the others need not wait for that again.
std::atomic<bool> process_is_alone{false};
std::atomic<bool> somebody_came{false};

// PEAKBENCH_EMULATED_RANKS: "alone", or for how many seconds ranks wait for each other.
std::string_view ranks_setting() {
  const char* text = std::getenv(kRanksVariable);
  return text ? text : "";
}

long patience(long usual) {
  static const long given = std::atol(std::string(ranks_setting()).c_str());
  return given > 0 ? given : usual;
}

long alone_patience() {
  if (process_is_alone) return 0;
  if (others_in_program()) return patience(kAlonePatience);
  return device_count() > 1 ? patience(kThreadsPatience) : 0;
}

// All communicators of the process, and who waits for which.
struct Communicators {
  std::mutex mutex;
  std::unordered_map<void*, CommunicatorPtr> by_handle;
  std::unordered_map<std::uint64_t, std::weak_ptr<Communicator>> by_id;
  std::uint64_t next_id = 0;
  std::string last_error;
};

Communicators& communicators() {
  static auto* const communicators = new Communicators;
  return *communicators;
}

CommunicatorPtr communicator_of(std::uint64_t id) {
  const std::lock_guard lock(communicators().mutex);
  const auto found = communicators().by_id.find(id);
  return found == communicators().by_id.end() ? nullptr : found->second.lock();
}

constexpr TicketOffice kOffice = {
    [](const Ticket& ticket) {
      const auto communicator = communicator_of(ticket.communicator);
      return !communicator || communicator->is_done(ticket);
    },
    [](const Ticket& ticket) {
      if (const auto communicator = communicator_of(ticket.communicator))
        communicator->wait(ticket);
    }};

// Gives it a number, by which streams know it.
std::uint64_t enter_communicator(const CommunicatorPtr& communicator) {
  open_ticket_office(&kOffice);
  const std::lock_guard lock(communicators().mutex);
  const auto id = ++communicators().next_id;
  communicators().by_id[id] = communicator;
  return id;
}

void set_last_error(const std::string& text) {
  const std::lock_guard lock(communicators().mutex);
  communicators().last_error = text;
}

}  // namespace

std::shared_ptr<Communicator> Communicator::create(const std::string& name, int ranks, int rank,
                                                   int device, std::string* problem) {
  auto made = std::make_shared<Communicator>();
  made->ranks_ = ranks;
  made->rank_ = rank;
  made->name_ = name;
  made->device_ = device;
  made->calls_.resize(static_cast<std::size_t>(ranks));
  made->received_.resize(static_cast<std::size_t>(ranks));
  enter_communicator_rank(device, rank, ranks);
  if (ranks > 1 && !name.empty() && ranks_setting() != "alone" && !process_is_alone) {
    made->board_ = Board::open(name, ranks);
    if (!made->board_) *problem = "the file of a communicator cannot be had, or has other ranks";
    if (!made->board_ || !made->take_seat(problem)) return nullptr;
  }
  made->id_ = enter_communicator(made);
  if (!made->board_ || (made->nobody_came() && alone_patience() == 0)) made->become_alone();
  return made;
}

bool Communicator::take_seat(std::string* problem) {
  const int card = static_cast<int>(ledger().devices[device_].card);
  for (int rank = 0; rank < ranks_; ++rank) {
    const Seat& seat = board_->seat(rank);
    if (rank != rank_ && seat.presence == Presence::joined && seat.card == card)
      enter(Fact::nccl_two_ranks);
  }
  if (board_->join(rank_, card)) return true;
  *problem = "rank " + std::to_string(rank_) + " has joined the communicator before";
  return false;
}

void Communicator::say_how_to_be_alone() const {
  static std::atomic<bool> said{false};
  if (said.exchange(true)) return;
  std::fprintf(
      stderr,
      "peakbench emulator: NCCL: rank %d of %d waits for the others; if there are none, set "
      "%s=alone\n",
      rank_, ranks_, kRanksVariable);
}

void Communicator::become_alone() {
  if (alone_.exchange(true) || ranks_ == 1) return;
  if (board_) process_is_alone = !somebody_came;
  enter(Fact::nccl_alone, {.rank = rank_, .ranks = ranks_});
}

bool Communicator::nobody_came() {
  if (somebody_came) return false;
  for (int rank = 0; rank < ranks_; ++rank)
    if (rank != rank_ && board_->seat(rank).presence != Presence::none) {
      somebody_came = true;
      return false;
    }
  return true;
}

int Communicator::fail(int error, const std::string& text) {
  int none = 0;
  if (!error_.compare_exchange_strong(none, error)) return error;
  set_last_error("NCCL: " + text);
  enter(Fact::nccl_failure, {.what = text.c_str()});
  return error;
}

std::uint64_t Communicator::post(Call call, int peer, int type, std::uint64_t about,
                                 Standing standing, const std::string& bytes) {
  Record record;
  record.call = static_cast<std::uint32_t>(call);
  record.peer = peer;
  record.type = static_cast<std::uint32_t>(type);
  record.standing = standing;
  record.bytes = about;
  record.sent = standing == kPeakbenchUnknown ? 0 : bytes.size();
  const bool collective = call != Call::send;
  const std::lock_guard lock(mutex_);
  bool posted = board_->post(rank_, record, bytes.data(), collective);
  if (!posted) {  // without its bytes, then
    record.standing = kPeakbenchUnknown;
    record.sent = 0;
    posted = board_->post(rank_, record, nullptr, collective);
  }
  if (!posted) fail(kRemoteError, "a rank cannot write what it sends (TMPDIR is full?)");
  return collective ? ++collectives_ : 0;
}

std::uint64_t Communicator::receive_from(int peer) {
  const std::lock_guard lock(mutex_);
  return ++received_[static_cast<std::size_t>(peer)];
}

bool Communicator::parse(int rank) {
  Calls& calls = calls_[static_cast<std::size_t>(rank)];
  Record record;
  if (!board_->read(rank, calls.parsed, &record, sizeof record)) return false;
  if (record.call != static_cast<std::uint32_t>(Call::send)) {
    calls.collectives.push_back(calls.parsed);
  } else if (record.peer == rank_) {
    calls.sent_here.push_back(calls.parsed);
  }
  calls.parsed += sizeof record + record.sent;
  return true;
}

bool Communicator::has(int rank, bool sent, std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  Calls& calls = calls_[static_cast<std::size_t>(rank)];
  const auto& known = sent ? calls.sent_here : calls.collectives;
  while (known.size() < sequence && parse(rank)) {
  }
  return known.size() >= sequence;
}

bool Communicator::read_posted(int rank, std::vector<std::uint64_t> Calls::*list,
                               std::uint64_t sequence, Posted& out) {
  std::uint64_t at;
  {
    const std::lock_guard lock(mutex_);
    at = (calls_[static_cast<std::size_t>(rank)].*list)[sequence - 1];
  }
  if (!board_->read(rank, at, &out.record, sizeof out.record)) return false;
  out.bytes.resize(out.record.sent);
  return board_->read(rank, at + sizeof out.record, out.bytes.data(), out.record.sent);
}

std::string Communicator::why_gone(int rank) {
  const Seat& seat = board_->seat(rank);
  const auto presence = seat.presence.load();
  const std::string who = "rank " + std::to_string(rank);
  if (presence == Presence::left) return who + " has left the communicator";
  if (presence == Presence::joined && start_of(seat.pid) != seat.started)
    return who + " (process " + std::to_string(seat.pid) + ") has ended";
  return "";
}

bool Communicator::wait_until(int rank, const std::function<bool()>& ready, const char* what) {
  const auto begin = Clock::now();
  auto looked = begin;
  for (microseconds pause{20};; pause = std::min(pause * 2, microseconds(1000))) {
    if (ready()) return true;
    if (alone_ || error_) return false;
    const auto now = Clock::now();
    if (now - looked > std::chrono::milliseconds(50)) {
      looked = now;
      const bool nobody = nobody_came();
      if (nobody && now - begin > seconds(alone_patience())) {
        become_alone();
        return false;
      }
      if (nobody && now - begin > kHintAfter) say_how_to_be_alone();
      const auto gone = why_gone(rank);
      if (!gone.empty()) {
        if (ready()) return true;  // it had called before
        fail(kRemoteError, gone + " without " + what);
        return false;
      }
      if (now - begin > seconds(patience(kPatience))) {
        fail(kRemoteError, "rank " + std::to_string(rank) + " came not to " + what + " within " +
                               std::to_string(patience(kPatience)) + " s");
        return false;
      }
    }
    std::this_thread::sleep_for(pause);
  }
}

bool Communicator::posted_by(int rank, std::uint64_t sequence, Call expected, std::uint64_t about,
                             Posted& out) {
  if (!wait_until(
          rank, [&] { return has(rank, false, sequence); }, word_of(expected)))
    return false;
  if (!read_posted(rank, &Calls::collectives, sequence, out)) return false;
  if (out.record.call == static_cast<std::uint32_t>(expected) && out.record.bytes == about)
    return true;
  fail(kInvalidUsage, "rank " + std::to_string(rank) + " called " +
                          word_of(static_cast<Call>(out.record.call)) + " of " +
                          std::to_string(out.record.bytes) + " bytes, this one " +
                          word_of(expected) + " of " + std::to_string(about));
  return false;
}

bool Communicator::sent_by(int rank, std::uint64_t sequence, std::uint64_t about, Posted& out) {
  if (!wait_until(
          rank, [&] { return has(rank, true, sequence); }, "ncclSend"))
    return false;
  if (!read_posted(rank, &Calls::sent_here, sequence, out)) return false;
  if (out.record.bytes == about) return true;
  fail(kInvalidUsage, "rank " + std::to_string(rank) + " sends " +
                          std::to_string(out.record.bytes) + " bytes, this one receives " +
                          std::to_string(about));
  return false;
}

bool Communicator::is_done(const Ticket& ticket) {
  if (alone_ || left_ || error_) return true;
  if (ticket.source < -1) return has(-2 - ticket.source, true, ticket.sequence);
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool needed = ticket.source < 0 || ticket.source == rank;
    if (needed && board_->seat(rank).collectives.load(std::memory_order_acquire) < ticket.sequence)
      return false;
  }
  return true;
}

void Communicator::wait(const Ticket& ticket) {
  for (int rank = 0; rank < ranks_ && !left_; ++rank) {
    const bool sent = ticket.source < -1;
    if (ticket.source != -1 && rank != (sent ? -2 - ticket.source : ticket.source)) continue;
    const auto called = [&] {
      return sent ? has(rank, true, ticket.sequence)
                  : board_->seat(rank).collectives.load() >= ticket.sequence;
    };
    if (alone_ || !wait_until(rank, called, sent ? "ncclSend" : "a collective")) return;
  }
}

void Communicator::leave() {
  left_ = true;
  if (board_) board_->seat(rank_).presence = Presence::left;
}

CommunicatorPtr find_communicator(void* handle) {
  const std::lock_guard lock(communicators().mutex);
  const auto found = communicators().by_handle.find(handle);
  return found == communicators().by_handle.end() ? nullptr : found->second;
}

void* handle_of(const CommunicatorPtr& communicator) {
  void* const handle = new_handle();
  const std::lock_guard lock(communicators().mutex);
  communicators().by_handle[handle] = communicator;
  return handle;
}

bool drop_communicator(void* handle) {
  const auto found = find_communicator(handle);
  if (!found) return false;
  found->leave();
  const std::lock_guard lock(communicators().mutex);
  communicators().by_handle.erase(handle);
  return true;
}

const char* last_error() {
  const std::lock_guard lock(communicators().mutex);
  thread_local std::string text;
  text = communicators().last_error;
  return text.c_str();
}

}  // namespace peakbench::emulator::nccl
