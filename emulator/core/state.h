// The state behind core.h; seen by the sources of core alone.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/address_space.h"
#include "core/core.h"
#include "core/exchange.h"
#include "core/memory.h"
#include "core/pools.h"
#include "core/shared_cards.h"
#include "core/values_hook.h"

namespace peakbench::emulator {

// What a read of device memory by the host was answered with, from good to bad.
enum class Answer {
  kept,        // what the host had put there, with no device work asked for since
  uncertain,   // what the host had put there, before device work that may have been meant to change
               // it
  substitute,  // plausible values in place of ones that could not be computed
  zeros,       // at least partly unknown
};

// Who hands out device memory to the program, which decides how long kept bytes are its own.
enum class Allocator {
  cuda,       // cudaMalloc itself
  watched,    // PyTorch's caching allocator, which says when it hands a block out again
  unwatched,  // the same without a listener: a kept byte may be an earlier tensor's
};

struct Range {
  MemoryKind kind;
  int device;
  std::uint64_t bytes;
  std::uint64_t handle = 0;  // of a mapping
  std::uint64_t ordinal = 0;
  std::unique_ptr<KeptBytes> kept = nullptr;  // of device memory whose bytes are kept
  std::uint64_t pool = 0;                     // that it is a piece of
  bool ends_in_page = false;                  // of cudaMalloc, but no multiple of its pages
  bool is_of_another = false;                 // of another process, which is charged for it

  bool on_device() const { return kind == MemoryKind::device || kind == MemoryKind::mapping; }
};

// Memory of cuMemCreate: charged while it is held or mapped.
struct PhysicalMemory {
  int device;
  std::uint64_t bytes;
  int holders = 1;
  int mappings = 0;
};

struct Pool {
  int device = 0;
  std::uint64_t most_bytes = 0;  // 0: as many as the device has
  std::uint64_t release_threshold = 0;
  PoolFigures figures{};
  PoolSpace space;
  bool destroyed = false;  // pieces of it are still in use
};

struct Memory {
  AddressSpace addresses;
  std::map<std::uint64_t, Range>
      ranges;  // by base: allocations, mappings, pinned and registered host memory
  std::map<std::uint64_t, std::uint64_t> reservations;  // cuMemAddressReserve: base -> bytes
  std::unordered_map<std::uint64_t, PhysicalMemory> physical;
  std::map<std::uint64_t, Pool> pools;
  std::map<int, std::uint64_t> current_pools;  // by device, where the program set one
  std::map<int, std::uint64_t> end_in_page;    // by device: how many allocations do
  std::uint64_t next_pool = 0;
  std::uint64_t next_handle = 0;
  std::uint64_t next_ordinal = 0;
};

// By stream: how far what it has issued goes; see late_streams.h.
using Progress = std::unordered_map<std::uint64_t, std::uint64_t>;

struct Stream {
  int device;
  int priority;
  unsigned flags;
  std::uint64_t capture = 0;  // 0: not capturing
  std::vector<Ticket> tickets;
  Progress progress;             // that this stream has or has waited for
  std::uint64_t idle_since = 0;  // how much work had been asked for when the host waited for it
};

struct Event {
  std::uint64_t capture = 0;    // the capture it was last recorded in
  std::vector<Ticket> tickets;  // of the stream, when it was recorded
  bool ends_work = false;       // recorded right after work of several ranks
  std::uint64_t ends_work_of =
      0;                       // the event before it, which does: that work's future has this one
  std::uint64_t recorded = 0;  // when: tells uses of an event apart
  std::uint64_t end_recorded = 0;  // and when that one was
  bool waited_for = false, joined = false, seen = false;
  Progress progress;  // of the stream, when it was recorded
  PeakbenchIssued issued{};
  bool asked_for = false;  // since it was recorded
};

struct Capture {
  std::uint64_t graph;
  std::uint64_t launches = 0;
  CaptureMode mode = CaptureMode::global;
  std::uint64_t thread = 0;  // that began it
  bool invalidated = false;  // by a call that it does not bear
};

struct Queues {
  std::unordered_map<std::uint64_t, Stream> streams;
  std::unordered_map<std::uint64_t, Event> events;
  std::unordered_map<std::uint64_t, Capture> captures;      // by id, while they last
  std::unordered_map<std::uint64_t, std::uint64_t> graphs;  // handle -> nodes
  std::uint64_t next_capture = 0;
  std::vector<Ticket> tickets_of_default;  // of the default streams, which are one here
  Progress progress_of_default, done_until;
  Progress told_until;  // that the host has seen done, see told_of_stream
  std::uint64_t default_idle_since = 0, all_idle_since = 0;
  std::uint64_t issued = 0, all_done_until = 0;
};

// Made at the first use and never destroyed: LibTorch calls CUDA until the very end of a process.
struct State {
  std::mutex mutex;
  CardFacts card;
  std::vector<int> cards;  // of the machine's, by device of this process
  bool has_card = false;
  std::unique_ptr<CardShare> share;  // null: no other process uses the cards
  Ledger* ledger = nullptr;
  std::atomic<std::uint64_t> device_work{0};  // launches and library calls asked for so far
  Allocator allocator = Allocator::cuda;
  bool pytorch_uses_pools = false;  // its allocator is cudaMallocAsync
  Memory memory;
  Queues queues;
};

State& state();
// It with its mutex held: auto [s, lock] = LockedState{};
struct LockedState {
  State& s = state();
  std::lock_guard<std::mutex> lock{s.mutex};
};
// Whether anything made it yet.
bool machine_state_made();

// The range that holds an address, or end(). Call with the mutex held.
std::map<std::uint64_t, Range>::iterator find_range(State& state, const void* address);

// Whether kept bytes may be an earlier tensor's. Tensors' bounds are only known if CUDA itself
// allocates each tensor. Call with the mutex held.
bool may_be_anothers(const State& state, const Range& range);

// Zeros in host memory. Whole pages of pinned memory, which the emulator mapped, go back to the
// system instead: what a card of 80 GB offloads then fits on a host with less.
void clear_host(State& state, char* at, std::uint64_t bytes);

// Charges a device; false if the card has not enough left. Call with the mutex held.
enum class Charge { malloc_memory, virtual_memory };
bool charge(State& state, int device, Charge kind, std::uint64_t bytes);
// charge() = try_charge() + note_refusal(). Use the parts if the caller can retry with fewer bytes.
bool try_charge(State& state, int device, Charge kind, std::uint64_t bytes);
void note_refusal(State& state, int device, std::uint64_t bytes);
void discharge(State& state, int device, Charge kind, std::uint64_t bytes);

// A piece of a pool is freed. Call with the mutex held.
void give_back_piece(State& state, std::uint64_t base, const Range& piece);
// The host has waited for something: pools give back what they have too much.
void trim_pools_to_thresholds();

// Enters an allocation that the host refused although the card had enough. Returns `result`. Call
// with the mutex held.
MemoryResult no_host_memory(State& state, std::uint64_t bytes, MemoryResult result);

// Asks the library that computes values (values_hook.h) about bytes that the host reads. Improves
// `answer` and the bytes in `to`. Call without the mutex.
ReadKind ask_reader(void* to, const void* from, std::uint64_t bytes, Answer& answer);
// Bytes of a device that PyTorch's allocator has allocated. False: unknown.
bool allocated_now(int device, std::uint64_t& bytes);
// Counts work that may have written anywhere, or work that was given these words.
void tell_of_work(PeakbenchWork work, const void* caller,
                  const std::vector<std::uint64_t>* words = nullptr);
// What is kept there is an earlier tensor's. With no lock held.
void forget_kept_bytes(std::uint64_t base, std::uint64_t bytes);
// A memory pool has handed it out. With no lock held.
void tell_of_piece(std::uint64_t base, std::uint64_t bytes);

// What a stream waits for. Call with the mutex held.
std::vector<Ticket>* tickets_of_stream(State& state, std::uint64_t stream);
// An event is recorded, or waited for. Call with the mutex held.
void note_recorded(std::uint64_t handle, Event& event, std::uint64_t stream);
void note_waited(State& state, Event& event);
void note_destroyed(Event& event);
// The calling thread has seen that it is done.
void asked_for_event(std::uint64_t event);
void merge_tickets(std::vector<Ticket>& into, const std::vector<Ticket>& from);

Ledger* open_ledger(const CardFacts& card, int device_count);
// In a child after fork: what it writes must not reach its parent's ledger.
void detach_ledger(Ledger* ledger);
// Enters who is reading device memory; takes the call stack of the calling thread.
void enter_read_back(Ledger& ledger, std::uint64_t bytes, Answer answer, ReadKind kind);
// For the calling thread's next entry: an integer was made up for it, without a known bound.
bool& reads_unbounded();
LedgerTime ledger_now();

}  // namespace peakbench::emulator
