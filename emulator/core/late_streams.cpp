#include "core/late_streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

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

bool reaches(const Progress& progress, const PeakbenchIssued& issued) {
  const auto found = progress.find(issued.stream);
  return found != progress.end() && issued.number <= found->second;
}

bool is_done(const State& s, const PeakbenchIssued& issued) {
  return issued.number <= s.queues.all_done_until || reaches(s.queues.done_until, issued);
}

PeakbenchIssued issue(State& s, std::uint64_t stream) {
  const PeakbenchIssued issued = {key_of(s, stream), ++s.queues.issued};
  progress_of(s, stream)[issued.stream] = issued.number;
  return issued;
}

// Marks it as asked for.
bool was_asked_for(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  return found == s.queues.events.end() || std::exchange(found->second.asked_for, true);
}

// Of all streams: a copy or a launch of another may have been waited for.
std::uint64_t work_asked_for(const State& s) {
  return s.device_work + s.ledger->copies_to_device + s.ledger->copies_in_device +
         s.ledger->copies_to_host;
}

std::uint64_t& idle_since(State& s, std::uint64_t stream) {
  const auto found = s.queues.streams.find(stream);
  return found == s.queues.streams.end() ? s.queues.default_idle_since : found->second.idle_since;
}

bool asks_in_a_loop(std::uint64_t event, std::uint64_t device_work) {
  auto& asked = questions;
  const auto now = std::chrono::steady_clock::now();
  if (asked.event != event || asked.device_work != device_work)
    asked = {event, device_work, 0, now};
  ++asked.count;
  return asked.count >= kQuestionsOfALoop ||
         (asked.count >= kQuestionsOfASlowLoop && now - asked.since >= kSlowLoop) ||
         (state().card.soon_streams && asked.count > 1);
}

}  // namespace

bool streams_lag() { return state().card.late_streams || state().card.soon_streams; }

void late_recorded(State& s, Event& event, std::uint64_t stream) {
  event.issued = issue(s, stream);
  event.progress = progress_of(s, stream);
  event.asked_for = false;
}

void late_waits(State& s, std::uint64_t stream, const Event& event) {
  merge(progress_of(s, stream), event.progress);
}

void late_waited_for_event(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  if (found != s.queues.events.end()) merge(s.queues.done_until, found->second.progress);
}

void late_waited_for_stream(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  issue(s, stream);
  merge(s.queues.done_until, progress_of(s, stream));
  idle_since(s, stream) = work_asked_for(s);
}

void late_waited_for_everything() {
  auto [s, lock] = LockedState{};
  s.queues.all_done_until = ++s.queues.issued;
  s.queues.all_idle_since = work_asked_for(s);
}

void told_of_event(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  if (found != s.queues.events.end()) merge(s.queues.told_until, found->second.progress);
}

void told_of_stream(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  issue(s, stream);
  merge(s.queues.told_until, progress_of(s, stream));
}

PeakbenchIssued issued_now(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  return issue(s, stream);
}

bool is_known_done(const PeakbenchIssued& issued) {
  auto [s, lock] = LockedState{};
  return is_done(s, issued) || reaches(s.queues.told_until, issued);
}

bool is_ordered_before(const PeakbenchIssued& issued, std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  return reaches(progress_of(s, stream), issued);
}

bool is_event_certain(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  return found == s.queues.events.end() || is_done(s, found->second.issued);
}

bool is_stream_certain(std::uint64_t stream) {
  auto [s, lock] = LockedState{};
  return std::max(idle_since(s, stream), s.queues.all_idle_since) == work_asked_for(s);
}

bool late_event_is_done(std::uint64_t event) {
  if (!streams_lag() || is_event_certain(event)) return true;
  const bool again = state().card.soon_streams && was_asked_for(event);
  if (!again && !asks_in_a_loop(event, state().device_work)) return false;
  late_waited_for_event(event);
  return true;
}

bool late_stream_is_done(std::uint64_t stream) {
  if (!streams_lag() || is_stream_certain(stream)) return true;
  if (!asks_in_a_loop(stream, state().device_work)) return false;
  late_waited_for_stream(stream);
  return true;
}

}  // namespace peakbench::emulator
