#include <algorithm>
#include <atomic>
#include <utility>

#include "core/late_streams.h"
#include "core/state.h"

namespace peakbench::emulator {
// Streams and events. Everything is done at once (but see late_streams.h), so they only need to be
// told apart and to know whether a capture is under way (streams.cpp).

namespace {

// Handles: numbers where no allocation lives, so that a stray use is seen at once and runs repeat
// each other.
constexpr std::uint64_t kHandles = 0x1f0000000000;
constexpr std::uint64_t kHandleStep = 64;

std::uint64_t fresh_handle() {
  static std::atomic<std::uint64_t> next{kHandles};
  return next.fetch_add(kHandleStep);
}

// CUDA's own: 0 (default), 1 (legacy), 2 (one a thread).
bool is_default(std::uint64_t stream) { return stream <= 2; }

}  // namespace

void* new_handle() { return reinterpret_cast<void*>(fresh_handle()); }

std::uint64_t create_stream(int priority, unsigned flags) {
  State& s = state();
  const auto handle = fresh_handle();
  std::lock_guard lock(s.mutex);
  s.queues.streams[handle] = {current_device(), priority, flags, 0, {}, {}};
  return handle;
}

bool destroy_stream(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.streams.find(stream);
  if (found == s.queues.streams.end()) return false;
  const auto capture = found->second.capture;
  s.queues.streams.erase(found);
  // Nobody can end it any more.
  const auto carries = [&](const auto& other) { return other.second.capture == capture; };
  if (std::ranges::none_of(s.queues.streams, carries)) s.queues.captures.erase(capture);
  return true;
}

bool stream_exists(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  return is_default(stream) || s.queues.streams.contains(stream);
}

int stream_priority(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  auto found = s.queues.streams.find(stream);
  return found == s.queues.streams.end() ? 0 : found->second.priority;
}

unsigned stream_flags(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  auto found = s.queues.streams.find(stream);
  return found == s.queues.streams.end() ? 0 : found->second.flags;
}

int stream_device(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  auto found = s.queues.streams.find(stream);
  return found == s.queues.streams.end() ? current_device() : found->second.device;
}

std::uint64_t create_event() {
  State& s = state();
  const auto handle = fresh_handle();
  std::lock_guard lock(s.mutex);
  s.queues.events[handle] = {};
  return handle;
}

bool destroy_event(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  if (found == s.queues.events.end()) return false;
  note_destroyed(found->second);
  s.queues.events.erase(found);
  return true;
}

bool event_exists(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  return s.queues.events.contains(event);
}

bool record_event(std::uint64_t event, std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  auto found = s.queues.events.find(event);
  if (found == s.queues.events.end()) return false;
  auto owner = s.queues.streams.find(stream);
  if (owner == s.queues.streams.end() && !is_default(stream)) return false;
  found->second.capture = owner == s.queues.streams.end() ? 0 : owner->second.capture;
  found->second.tickets = *tickets_of_stream(s, stream);
  note_recorded(event, found->second, stream);
  late_recorded(s, found->second, stream);
  return true;
}

// A stream that waits for an event of a capture joins it.
bool wait_event(std::uint64_t stream, std::uint64_t event) {
  auto [s, lock] = LockedState{};
  auto found = s.queues.events.find(event);
  auto waiter = s.queues.streams.find(stream);
  if (found == s.queues.events.end()) return false;
  if (waiter == s.queues.streams.end() && !is_default(stream)) return false;
  merge_tickets(*tickets_of_stream(s, stream), found->second.tickets);
  note_waited(s, found->second);
  late_waits(s, stream, found->second);
  if (waiter == s.queues.streams.end()) return true;
  const auto capture = found->second.capture;
  if (!capture || !s.queues.captures.contains(capture)) return true;
  const auto own = s.queues.captures.find(waiter->second.capture);
  if (own == s.queues.captures.end()) {
    waiter->second.capture = capture;
  } else if (own->first != capture) {  // CUDA does not merge captures
    own->second.invalidated = s.queues.captures.at(capture).invalidated = true;
  }
  return true;
}

std::uint64_t graph_nodes(std::uint64_t graph) {
  auto [s, lock] = LockedState{};
  if (auto done = s.queues.graphs.find(graph); done != s.queues.graphs.end()) return done->second;
  for (const auto& [id, capture] : s.queues.captures) {
    if (capture.graph == graph) return capture.launches;
  }
  return 0;
}

namespace {

void count_in_capture(std::uint64_t stream) {
  if (is_default(stream)) return;
  auto [s, lock] = LockedState{};
  auto found = s.queues.streams.find(stream);
  if (found == s.queues.streams.end() || !found->second.capture) return;
  ++s.queues.captures[found->second.capture].launches;
}

}  // namespace

void count_launch(std::uint64_t stream, PeakbenchWork work, const void* caller,
                  const std::vector<std::uint64_t>* words) {
  add_one(ledger().kernel_launches);
  tell_of_work(work, caller, words);
  count_in_capture(stream);
}

// Captures of CUDA graphs, and what disturbs them: by CUDA's programming guide ("Prohibited and
// Unhandled Operations" of stream capture) and the text of cudaThreadExchangeStreamCaptureMode.
// What an H200 made of calls in the default mode is in tests/emulated/real_card.

namespace {

std::atomic<int> under_way{0};
thread_local CaptureMode mode_of_thread = CaptureMode::global;

// Not the thread's own id, which a later one may have.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local const std::uint64_t number = ++threads;
  return number;
}

// Whether a call that another thread's or this one's capture may not bear is made now; those
// captures are over then.
bool is_unsafe(State& s) {
  if (mode_of_thread == CaptureMode::relaxed) return false;
  bool unsafe = false;
  for (auto& [id, capture] : s.queues.captures) {
    const bool own = capture.thread == this_thread();
    if (own ? capture.mode == CaptureMode::relaxed
            : mode_of_thread != CaptureMode::global || capture.mode != CaptureMode::global)
      continue;
    capture.invalidated = true;
    unsafe = true;
  }
  return unsafe;
}

CaptureError unsupported_if(bool is) { return is ? CaptureError::unsupported : CaptureError::none; }

bool invalidate(State& s, std::uint64_t id) {
  const auto found = s.queues.captures.find(id);
  if (found == s.queues.captures.end()) return false;
  found->second.invalidated = true;
  return true;
}

}  // namespace

CaptureMode exchange_capture_mode(CaptureMode mode) { return std::exchange(mode_of_thread, mode); }

bool begin_capture(std::uint64_t stream, CaptureMode mode) {
  State& s = state();
  const auto graph = reinterpret_cast<std::uint64_t>(new_handle());
  std::lock_guard lock(s.mutex);
  auto found = s.queues.streams.find(stream);
  if (found == s.queues.streams.end() || found->second.capture) return false;
  found->second.capture = ++s.queues.next_capture;
  s.queues.captures[found->second.capture] = {
      .graph = graph, .mode = mode, .thread = this_thread()};
  ++under_way;
  return true;
}

CaptureInfo capture_info(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.streams.find(stream);
  if (found == s.queues.streams.end() || !found->second.capture) return {};
  const Capture& capture = s.queues.captures[found->second.capture];
  return {found->second.capture, capture.graph, capture.invalidated};
}

std::uint64_t capture_of(std::uint64_t stream) { return under_way ? capture_info(stream).id : 0; }

CaptureInfo end_capture(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  auto found = s.queues.streams.find(stream);
  if (found == s.queues.streams.end() || !found->second.capture) return {};
  const auto id = found->second.capture;
  const Capture capture = s.queues.captures[id];
  s.queues.captures.erase(id);
  --under_way;
  for (auto& [handle, other] : s.queues.streams) {
    if (other.capture == id) other.capture = 0;
  }
  if (capture.invalidated) return {.invalidated = true};
  s.queues.graphs[capture.graph] = capture.launches;
  return {.graph = capture.graph};
}

CaptureError takes_memory_in_capture() {
  auto [s, lock] = LockedState{};
  return unsupported_if(is_unsafe(s));
}

CaptureError asks_device_in_capture() {
  auto [s, lock] = LockedState{};
  bool on_device = false;
  for (const auto& [handle, stream] : s.queues.streams) {
    if (stream.capture && stream.device == current_device())
      on_device |= invalidate(s, stream.capture);
  }
  return unsupported_if(on_device);
}

CaptureError asks_stream_in_capture(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.streams.find(stream);
  const bool captured = found != s.queues.streams.end() && invalidate(s, found->second.capture);
  return unsupported_if(captured || is_unsafe(s));
}

CaptureError asks_event_in_capture(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  if (found != s.queues.events.end() && invalidate(s, found->second.capture))
    return CaptureError::captured_event;
  return unsupported_if(is_unsafe(s));
}

}  // namespace peakbench::emulator

extern "C" int peakbench_emulator_captures(void) { return peakbench::emulator::under_way; }
