// Captures of CUDA graphs, and what disturbs them: by CUDA's programming guide ("Prohibited and
// Unhandled Operations" of stream capture) and the text of cudaThreadExchangeStreamCaptureMode.
// What an H200 made of calls in the default mode is in tests/emulated/real_card.
#include <atomic>
#include <utility>

#include "core/state.h"

namespace peakbench::emulator {
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
  State& s = state();
  std::lock_guard lock(s.mutex);
  const auto found = s.queues.streams.find(stream);
  if (found == s.queues.streams.end() || !found->second.capture) return {};
  const Capture& capture = s.queues.captures[found->second.capture];
  return {found->second.capture, capture.graph, capture.invalidated};
}

std::uint64_t capture_of(std::uint64_t stream) { return under_way ? capture_info(stream).id : 0; }

CaptureEnd end_capture(std::uint64_t stream) {
  State& s = state();
  std::lock_guard lock(s.mutex);
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
  State& s = state();
  std::lock_guard lock(s.mutex);
  return unsupported_if(is_unsafe(s));
}

CaptureError asks_device_in_capture() {
  State& s = state();
  std::lock_guard lock(s.mutex);
  bool on_device = false;
  for (const auto& [handle, stream] : s.queues.streams) {
    if (stream.capture && stream.device == current_device())
      on_device |= invalidate(s, stream.capture);
  }
  return unsupported_if(on_device);
}

CaptureError asks_stream_in_capture(std::uint64_t stream) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  const auto found = s.queues.streams.find(stream);
  const bool captured = found != s.queues.streams.end() && invalidate(s, found->second.capture);
  return unsupported_if(captured || is_unsafe(s));
}

CaptureError asks_event_in_capture(std::uint64_t event) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  const auto found = s.queues.events.find(event);
  if (found != s.queues.events.end() && invalidate(s, found->second.capture))
    return CaptureError::captured_event;
  return unsupported_if(is_unsafe(s));
}

}  // namespace peakbench::emulator

extern "C" int peakbench_emulator_captures(void) { return peakbench::emulator::under_way; }
