#include "core/exchange.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "core/late_streams.h"
#include "core/state.h"

namespace peakbench::emulator {
namespace {

std::atomic<const PeakbenchExchange*> exchange{nullptr};
std::atomic<const TicketOffice*> office{nullptr};

// What copies put there, where nobody computes values.
Standing take_kept(const void* from, std::uint64_t bytes, void* to) {
  auto [s, lock] = LockedState{};
  const auto range = find_range(s, from);
  if (range == s.memory.ranges.end() || !range->second.kept) return kPeakbenchUnknown;
  const auto since = range->second.kept->since(number(from) - range->first, bytes);
  if (!since || (may_be_anothers(s, range->second) && *since != s.device_work))
    return kPeakbenchUnknown;
  std::memcpy(to, from, bytes);
  return *since == s.device_work ? kPeakbenchKnown : kPeakbenchSubstitute;
}

void forget_kept(void* to, std::uint64_t bytes) { forget_kept_bytes(number(to), bytes); }

void merge(std::vector<Ticket>& into, const Ticket& ticket) {
  for (Ticket& held : into) {
    if (held.communicator != ticket.communicator || held.source != ticket.source) continue;
    held.sequence = std::max(held.sequence, ticket.sequence);
    return;
  }
  into.push_back(ticket);
}

void wait_for(const std::vector<Ticket>& tickets) {
  const TicketOffice* asked = office.load(std::memory_order_acquire);
  if (!asked) return;
  for (const Ticket& ticket : tickets) asked->wait(ticket);
}

// Those that are not done yet; forgets the others.
std::vector<Ticket> open_tickets(std::vector<Ticket>* (*find)(State&, std::uint64_t),
                                 std::uint64_t handle) {
  const TicketOffice* asked = office.load(std::memory_order_acquire);
  if (!asked) return {};
  State& s = state();
  std::vector<Ticket> tickets;
  {
    std::lock_guard lock(s.mutex);
    if (const auto* held = find(s, handle)) tickets = *held;
  }
  const auto before = tickets.size();
  std::erase_if(tickets, [&](const Ticket& ticket) { return asked->is_done(ticket); });
  if (tickets.empty() && before) {
    std::lock_guard lock(s.mutex);
    if (auto* held = find(s, handle); held && held->size() == before) held->clear();
  }
  return tickets;
}

std::vector<Ticket>* of_event(State& s, std::uint64_t event) {
  const auto found = s.queues.events.find(event);
  return found == s.queues.events.end() ? nullptr : &found->second.tickets;
}

// Of other events nobody is told that they have to wait: PyTorch's allocator asks such whether it
// may hand a block out again, and when other ranks come must not decide that.
std::vector<Ticket>* of_event_that_ends_work(State& s, std::uint64_t event) {
  const auto found = s.queues.events.find(event);
  return found == s.queues.events.end() || !found->second.ends_work ? nullptr
                                                                    : &found->second.tickets;
}

}  // namespace

std::vector<Ticket>* tickets_of_stream(State& s, std::uint64_t stream) {
  const auto found = s.queues.streams.find(stream);
  return found == s.queues.streams.end() ? &s.queues.tickets_of_default : &found->second.tickets;
}

void merge_tickets(std::vector<Ticket>& into, const std::vector<Ticket>& from) {
  for (const Ticket& ticket : from) merge(into, ticket);
}

Standing take_value(const void* from, std::uint64_t bytes, bool floating, void* to,
                    Unsure& unsure) {
  const PeakbenchUnsure into = {&unsure, [](void* list, std::uint64_t begin, std::uint64_t end) {
                                  static_cast<Unsure*>(list)->emplace_back(begin, end);
                                }};
  if (const auto* values = exchange.load(std::memory_order_acquire)) {
    const int standing = values->take(number(from), bytes, floating, to, &into);
    if (standing != kPeakbenchNotMine) return static_cast<Standing>(standing);
  }
  return take_kept(from, bytes, to);
}

bool expect_value(void* to, std::uint64_t bytes, const PeakbenchArrival& arrival) {
  const auto* values = exchange.load(std::memory_order_acquire);
  if (!values || !values->expect(number(to), bytes, &arrival)) return false;
  forget_kept(to, bytes);
  return true;
}

void put_value(void* to, std::uint64_t bytes, const void* data, Standing standing) {
  forget_value(to, bytes);
  if (standing == kPeakbenchUnknown) return;
  copy_bytes(to, data, bytes);
  // Later than what a launch may have changed: not certain.
  if (standing != kPeakbenchKnown) count_device_work();
}

namespace {

// Bytes that are there already: an arrival that nobody waits for.
int give(void* token, void* to, const PeakbenchUnsure*) {
  const auto& bytes = *static_cast<std::string*>(token);
  std::memcpy(to, bytes.data(), bytes.size());
  return kPeakbenchKnown;
}

void release(void* token) { delete static_cast<std::string*>(token); }

}  // namespace

void follow_bytes(void* to, std::uint64_t bytes, const std::function<std::string()>& bytes_there) {
  const auto* values = exchange.load(std::memory_order_acquire);
  if (!values) return;
  if (bytes <= kLargestHostValue) {
    const PeakbenchArrival arrival = {new std::string(bytes_there()), give, release};
    if (values->expect(number(to), bytes, &arrival)) return;
    release(arrival.token);
  }
  values->forget(number(to), bytes);
}

void follow_move(void* to, const void* from, std::uint64_t bytes) {
  const auto* values = exchange.load(std::memory_order_acquire);
  if (values && to != from) values->move(number(to), number(from), bytes);
}

MemoryResult move_value(void* to, const void* from, std::uint64_t bytes) {
  if (to == from) return MemoryResult::ok;
  const auto result = copy_bytes(to, from, bytes);
  if (result == MemoryResult::ok) follow_move(to, from, bytes);
  return result;
}

void forget_value(void* to, std::uint64_t bytes) {
  if (const auto* values = exchange.load(std::memory_order_acquire))
    values->forget(number(to), bytes);
  forget_kept(to, bytes);
}

void open_ticket_office(const TicketOffice* opened) { office = opened; }

void enqueue(std::uint64_t stream, const Ticket& ticket) {
  auto [s, lock] = LockedState{};
  merge(*tickets_of_stream(s, stream), ticket);
  mark_work(stream);
}

void wait_for_stream(std::uint64_t stream) {
  wait_for(open_tickets(tickets_of_stream, stream));
  late_waited_for_stream(stream);
  trim_pools_to_thresholds();
}
void wait_for_event(std::uint64_t event) {
  wait_for(open_tickets(of_event, event));
  late_waited_for_event(event);
  trim_pools_to_thresholds();
}

void wait_for_everything() {
  late_waited_for_everything();
  trim_pools_to_thresholds();
  if (!office.load(std::memory_order_acquire)) return;
  std::vector<Ticket> tickets;
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    tickets = s.queues.tickets_of_default;
    for (const auto& [handle, stream] : s.queues.streams) merge_tickets(tickets, stream.tickets);
  }
  wait_for(tickets);
}

bool is_stream_done(std::uint64_t stream) {
  return open_tickets(tickets_of_stream, stream).empty() && late_stream_is_done(stream);
}
bool is_event_done(std::uint64_t event) {
  const bool done =
      open_tickets(of_event_that_ends_work, event).empty() && late_event_is_done(event);
  if (done) asked_for_event(event);
  return done;
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_exchange(const PeakbenchExchange* values) {
  peakbench::emulator::exchange = values;
}

namespace peakbench::emulator {
// Which collectives PyTorch's watchdog has seen to be done, as far as the program's memory depends
// on that; see exchange.h.
//
// ProcessGroupNCCL records two events after a collective: the end of its work, which `wait` waits
// for and the watchdog asks for, and at once its future's, on the same stream.

namespace {

// The watchdog sleeps for 0.1 s. Without one (TORCH_NCCL_BLOCKING_WAIT) nobody ever asks.
constexpr std::chrono::milliseconds kPatience(2000);

struct Recording {  // of the calling thread
  bool enqueued = false;
  std::uint64_t stream = 0;
  std::uint64_t end = 0;  // the event that was recorded last, if it ends work
  std::uint64_t end_recorded = 0;
  std::uint64_t asked_for = 0;
};
thread_local Recording recording;

std::atomic<int> unseen{0};  // works that were joined, and that the watchdog has not seen
std::atomic<bool> nobody_looks{false};

bool matters(const Event& event) {
  return event.ends_work && event.joined && !event.waited_for && !event.seen;
}

// Keeps `unseen` while an event changes.
template <typename Change>
void change(Event& event, Change&& changed) {
  const bool before = matters(event);
  changed(event);
  unseen += static_cast<int>(matters(event)) - static_cast<int>(before);
}

}  // namespace

void mark_work(std::uint64_t stream) {
  recording.enqueued = true;
  recording.stream = stream;
}

void note_recorded(std::uint64_t handle, Event& event, std::uint64_t stream) {
  static std::uint64_t recorded = 0;  // under the mutex
  const bool ends = recording.enqueued && recording.stream == stream;
  const auto end = recording.stream == stream ? recording.end : 0;
  change(event, [&](Event& e) {
    e.ends_work = ends;
    e.waited_for = e.joined = e.seen = false;
  });
  event.recorded = ++recorded;
  event.ends_work_of = ends ? 0 : end;
  event.end_recorded = recording.end_recorded;
  recording.end = ends ? handle : 0;
  recording.end_recorded = recorded;
  if (ends) recording.enqueued = false;
}

void note_waited(State& s, Event& event) {
  if (event.ends_work) change(event, [](Event& e) { e.waited_for = true; });
  const auto end = s.queues.events.find(event.ends_work_of);
  // Recorded anew since: it is another work's by now.
  if (end == s.queues.events.end() || end->second.recorded != event.end_recorded) return;
  change(end->second, [](Event& e) { e.joined = true; });
}

void note_destroyed(Event& event) {
  change(event, [](Event& e) { e.ends_work = false; });
}

void asked_for_event(std::uint64_t event) { recording.asked_for = event; }

void looked_at_events() {
  if (!recording.asked_for) return;
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(recording.asked_for);
  recording.asked_for = 0;
  if (found != s.queues.events.end()) change(found->second, [](Event& e) { e.seen = true; });
}

void wait_for_watchdog() {
  if (unseen <= 0 || nobody_looks || streams_lag()) return;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (unseen > 0) {
    if (std::chrono::steady_clock::now() > until) {
      nobody_looks = true;
      enter(Fact::nccl_unwatched);
      return;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

}  // namespace peakbench::emulator
