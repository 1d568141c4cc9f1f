// Streams that lag behind the host. Work is done when the host has waited for it (the card's option
// `streams=late`), or also at the second query (`streams=soon`).
//
// PyTorch's allocator queries events before it reuses a block that another stream has used. If the
// event is not done, it takes another block, and later blocks have other addresses.
#pragma once

#include <cstdint>

#include "core/state.h"

namespace peakbench::emulator {

bool streams_lag();

// What the entry points do, also where streams are not late: what is done there may not be so on a
// card. With the mutex held:
void late_recorded(State& state, Event& event, std::uint64_t stream);
void late_waits(State& state, std::uint64_t stream, const Event& event);
// Without it: the host has waited.
void late_waited_for_event(std::uint64_t event);
void late_waited_for_stream(std::uint64_t stream);
void late_waited_for_everything();

// Without a wait: a query returned that the work is done; see also told_of_stream in streams.h.
// Whether blocks are free is queried as before.
void told_of_event(std::uint64_t event);
// A place in a stream's work: behind all that was asked of it so far.
PeakbenchIssued issued_now(std::uint64_t stream);
// Whether the host has waited for it, or a query has returned that it is done.
bool is_known_done(const PeakbenchIssued& issued);
// Whether what is asked of the stream from now on is done later.
bool is_ordered_before(const PeakbenchIssued& issued, std::uint64_t stream);

// Whether the host has waited for what the event ends; for all that was asked of the card before it
// waited for the stream. Without the mutex.
bool is_event_certain(std::uint64_t event);
bool is_stream_certain(std::uint64_t stream);
// The same, also by asking for it again and again while nothing else is issued, or again where they
// are done soon. True where streams do not lag.
bool late_event_is_done(std::uint64_t event);
bool late_stream_is_done(std::uint64_t stream);

}  // namespace peakbench::emulator
