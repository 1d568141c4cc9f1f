#include "core/late_streams.h"

#include <algorithm>
#include <chrono>

namespace peakbench::emulator {
namespace {

// A loop that asks for nothing but one event would never end: it is taken to wait.
constexpr int kQuestionsOfALoop = 1000;
constexpr int kQuestionsOfASlowLoop = 20;
constexpr std::chrono::seconds kSlowLoop(2);

struct Questions {  // of the calling thread
  std::uint64_t event = 0, device_work = 0;
  int count = 0;
  std::chrono::steady_clock::time_point since;
};
thread_local Questions questions;

constexpr std::uint64_t kDefaultStream = 0;

std::uint64_t key_of(const State& s, std::uint64_t stream) {
  return s.queues.streams.contains(stream) ? stream : kDefaultStream;
}

Progress& progress_of(State& s, std::uint64_t stream) {
  const auto found = s.queues.streams.find(stream);
  return found == s.queues.streams.end() ? s.queues.progress_of_default : found->second.progress;
}

void merge(Progress& into, const Progress& from) {
  for (const auto& [stream, until] : from) into[stream] = std::max(into[stream], until);
}

bool is_done(const State& s, const Event& event) {
  if (event.issued <= s.queues.all_done_until) return true;
  const auto done = s.queues.done_until.find(event.issued_on);
  return done != s.queues.done_until.end() && event.issued <= done->second;
}

bool asks_in_a_loop(std::uint64_t event, std::uint64_t device_work) {
  auto& asked = questions;
  const auto now = std::chrono::steady_clock::now();
  if (asked.event != event || asked.device_work != device_work)
    asked = {event, device_work, 0, now};
  ++asked.count;
  return asked.count >= kQuestionsOfALoop ||
         (asked.count >= kQuestionsOfASlowLoop && now - asked.since >= kSlowLoop);
}

}  // namespace

bool streams_are_late() { return state().card.late_streams; }

void late_recorded(State& s, Event& event, std::uint64_t stream) {
  if (!streams_are_late()) return;
  auto& progress = progress_of(s, stream);
  event.issued_on = key_of(s, stream);
  event.issued = ++s.queues.issued;
  progress[event.issued_on] = event.issued;
  event.progress = progress;
}

void late_waits(State& s, std::uint64_t stream, const Event& event) {
  if (streams_are_late()) merge(progress_of(s, stream), event.progress);
}

void late_waited_for_event(std::uint64_t event) {
  if (!streams_are_late()) return;
  State& s = state();
  std::lock_guard lock(s.mutex);
  const auto found = s.queues.events.find(event);
  if (found != s.queues.events.end()) merge(s.queues.done_until, found->second.progress);
}

void late_waited_for_stream(std::uint64_t stream) {
  if (!streams_are_late()) return;
  State& s = state();
  std::lock_guard lock(s.mutex);
  auto& progress = progress_of(s, stream);
  progress[key_of(s, stream)] = ++s.queues.issued;
  merge(s.queues.done_until, progress);
}

void late_waited_for_everything() {
  if (!streams_are_late()) return;
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.queues.all_done_until = ++s.queues.issued;
}

bool late_event_is_done(std::uint64_t event) {
  if (!streams_are_late()) return true;
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    const auto found = s.queues.events.find(event);
    if (found == s.queues.events.end() || is_done(s, found->second)) return true;
  }
  if (!asks_in_a_loop(event, s.device_work)) return false;
  late_waited_for_event(event);
  return true;
}

}  // namespace peakbench::emulator
