// Memory and the emulated NCCL: bytes that leave, with their known values, and bytes that arrive
// from another rank, when they are read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/api.h"
#include "core/memory.h"
#include "core/values_hook.h"

namespace peakbench::emulator {

using Standing = PeakbenchStanding;

// Bytes that are only plausible: begin and end.
using Unsure = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// Whether a block holds so many bytes there; names the call in the ledger where it does not.
PEAKBENCH_EMULATOR_API bool is_whole(const void* address, std::uint64_t bytes, const char* call);

// Copies what is known of the bytes to `to`. Of floating-point numbers, substitutes are unknown.
// Where they are partly known, `unsure` says which are not. May compute, and wait for what others
// were to send.
PEAKBENCH_EMULATOR_API Standing take_value(const void* from, std::uint64_t bytes, bool floating,
                                           void* to, Unsure& unsure);
// The bytes will come from the arrival, which this takes over. False: the values are never
// requested later. Then the caller keeps the arrival and must write the bytes now.
PEAKBENCH_EMULATOR_API bool expect_value(void* to, std::uint64_t bytes,
                                         const PeakbenchArrival& arrival);
PEAKBENCH_EMULATOR_API void put_value(void* to, std::uint64_t bytes, const void* data,
                                      Standing standing);
// As a copy on the device, values included.
PEAKBENCH_EMULATOR_API MemoryResult move_value(void* to, const void* from, std::uint64_t bytes);
// Reports bytes that were written without one of PyTorch's operators: their values are the written
// ones or unknown. `bytes_there` is called if the values are kept.
void follow_bytes(void* to, std::uint64_t bytes, const std::function<std::string()>& bytes_there);
void follow_move(void* to, const void* from, std::uint64_t bytes);
// From now on the bytes there are unknown.
PEAKBENCH_EMULATOR_API void forget_value(void* to, std::uint64_t bytes);

// A piece of work that is done when other ranks have taken part in it.
struct Ticket {
  std::uint64_t communicator;
  // Whose part it needs: -1 everybody's, a rank's, or -2 - rank for what that one sends to this.
  std::int32_t source;
  std::uint64_t sequence;  // later work of the same communicator and source ends no earlier
};

// Whoever knows; called without a lock. `wait` gives up after a bounded time.
struct TicketOffice {
  bool (*is_done)(const Ticket&);
  void (*wait)(const Ticket&);
};
PEAKBENCH_EMULATOR_API void open_ticket_office(const TicketOffice* office);
// Work on a stream: who waits for the stream waits for it.
PEAKBENCH_EMULATOR_API void enqueue(std::uint64_t stream, const Ticket& ticket);

// The same for work that nothing has to wait for.
PEAKBENCH_EMULATOR_API void mark_work(std::uint64_t stream);

// Waits until PyTorch's watchdog has seen the collectives that the program has waited for. Call it
// before each collective.
//
// PyTorch keeps a collective's tensors until the program waits for it, or until the next collective
// after its watchdog has seen it done. The watchdog is a thread that checks ten times a second. If
// collectives are only waited for through a future (DDP), the peak would depend on when it checks.
// On a real card a step takes longer than its interval.
PEAKBENCH_EMULATOR_API void wait_for_watchdog();
// The calling thread is through with what it asked events for.
PEAKBENCH_EMULATOR_API void looked_at_events();

// For the entry points that wait and ask.
PEAKBENCH_EMULATOR_API void wait_for_stream(std::uint64_t stream);
PEAKBENCH_EMULATOR_API void wait_for_event(std::uint64_t event);
PEAKBENCH_EMULATOR_API void wait_for_everything();
PEAKBENCH_EMULATOR_API bool is_stream_done(std::uint64_t stream);
PEAKBENCH_EMULATOR_API bool is_event_done(std::uint64_t event);

}  // namespace peakbench::emulator
