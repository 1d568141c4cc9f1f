// Which collectives PyTorch's watchdog has seen to be done, as far as the program's memory depends
// on that; see exchange.h.
//
// ProcessGroupNCCL records two events after a collective: the end of its work, which `wait` waits
// for and the watchdog asks for, and at once its future's, on the same stream.
#include <atomic>
#include <chrono>
#include <thread>

#include "core/late_streams.h"
#include "core/state.h"

namespace peakbench::emulator {
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
  State& s = state();
  std::lock_guard lock(s.mutex);
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
