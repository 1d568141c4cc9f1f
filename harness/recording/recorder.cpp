#include "recording/recorder.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "recording/dtype_words.h"
#include "recording/factories.h"
#include "trace/phases.h"

namespace peakbench::recording {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Threads are numbered in the order in which the recorder meets them.
std::atomic<std::int32_t> threads{0};

// Where a thread is. Thread-local because backward of a CUDA device runs on a thread of its own.
struct Place {
  std::vector<std::int32_t> modules, operators;
  std::int32_t thread = threads++;
};
thread_local Place place;

// A plugin's name, short enough to be taken as it is the next time.
std::string shortened(std::string_view name) {
  constexpr std::size_t kRoomForCount = 64;
  return bounded(name, kLongestText - kRoomForCount);
}

std::string shape_text(const at::Tensor& tensor) {
  std::string text = "[";
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

std::int32_t intern(const std::string& word, std::unordered_map<std::string, std::int32_t>& indices,
                    std::vector<std::string>& words) {
  const auto [found, is_new] = indices.try_emplace(word, static_cast<std::int32_t>(words.size()));
  if (is_new) words.push_back(bounded(word));
  return found->second;
}

std::optional<std::uint64_t> last_out_of_memory(const std::vector<trace::Event>& events) {
  for (std::uint64_t number = events.size(); number-- > 0;)
    if (events[number].kind == trace::EventKind::kOutOfMemory) return number;
  return std::nullopt;
}

}  // namespace

Recorder::Recorder(std::string device, std::string own_space, bool emulated)
    : own_name_(std::move(own_space)), start_ns_(now_ns()) {
  trace_.device = std::move(device);
  trace_.emulated = emulated;
  constexpr std::size_t kFirstEvents = 1 << 17;
  trace_.events.reserve(kFirstEvents);
}

int Recorder::add_space(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const int index = static_cast<int>(trace_.spaces.size());
  trace_.spaces.push_back(name);
  if (name == own_name_) own_space_ = trace_.own_space = index;
  return index;
}

trace::Event Recorder::here(trace::EventKind kind, int space, std::uint64_t address) const {
  trace::Event event;
  event.kind = kind;
  event.space = static_cast<std::int16_t>(space);
  event.address = address;
  event.thread = place.thread;
  event.module = current_module();
  event.time_ns = trace_.emulated ? -1 : now_ns() - start_ns_;
  return event;
}

std::int32_t Recorder::stream_index(std::int64_t stream) {
  return streams_.try_emplace(stream, static_cast<std::int32_t>(streams_.size())).first->second;
}

void Recorder::allocated(int space, std::uint64_t address, std::int64_t requested_bytes,
                         std::int64_t block_bytes, std::int64_t stream) {
  trace::Event event = here(trace::EventKind::kAlloc, space, address);
  event.requested_bytes = requested_bytes;
  event.block_bytes = block_bytes;
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  event.stream = stream_index(stream);
  event.op = current_operator();
  live_[address] = {.event = trace_.events.size()};
  trace_.events.push_back(event);
  if (space == own_space_) {
    own_space_bytes_ += block_bytes;
    own_space_peak_ = std::max(own_space_peak_.load(), own_space_bytes_.load());
  }
}

// Called with the lock held.
bool Recorder::end_of_life(trace::Event& event) {
  const auto found = live_.find(event.address);
  if (!recording_ || found == live_.end()) return false;  // allocated before tracing began
  const trace::Event& allocation = trace_.events[found->second.event];
  event.requested_bytes = allocation.requested_bytes;
  event.block_bytes = allocation.block_bytes;
  event.stream = allocation.stream;
  event.op = current_operator();
  if (event.space == own_space_ && !found->second.free_requested)
    own_space_bytes_ -= event.block_bytes;
  found->second.free_requested = true;
  if (event.kind == trace::EventKind::kFree) live_.erase(found);
  return true;
}

void Recorder::free_requested(int space, std::uint64_t address) {
  trace::Event event = here(trace::EventKind::kFreeRequested, space, address);
  const std::lock_guard lock(mutex_);
  if (end_of_life(event)) trace_.events.push_back(event);
}

void Recorder::freed(int space, std::uint64_t address) {
  trace::Event event = here(trace::EventKind::kFree, space, address);
  const std::lock_guard lock(mutex_);
  if (end_of_life(event)) trace_.events.push_back(event);
}

void Recorder::event(trace::EventKind kind, int space, std::uint64_t address, std::int64_t bytes,
                     std::int64_t stream) {
  trace::Event event = here(kind, space, address);
  event.requested_bytes = event.block_bytes = bytes;
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  event.stream = stream_index(stream);
  event.op = current_operator();
  trace_.events.push_back(event);
}

bool Recorder::is_in_optimizer_step() const {
  return optimizer_step_.load(std::memory_order_relaxed);
}

void Recorder::add_mark(trace::ScopeMark mark) {
  mark.thread = place.thread;
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  mark.event = trace_.events.size();
  trace_.scopes.push_back(mark);
}

void Recorder::set_phase(trace::Phase phase, std::int32_t step) {
  optimizer_step_ = phase == trace::Phase::kOptimizerStep;
  add_mark({.phase = phase, .step = step});
}

// There are many modules and nodes of backward: their scopes are recorded only where they may
// change a phase.
void Recorder::enter_module(std::int32_t module) {
  if (is_in_optimizer_step() && at::GradMode::is_enabled()) begin(trace::ScopeKind::kModule);
  push_module(module);
}
void Recorder::exit_module() {
  note_unwinding();
  place.modules.pop_back();
}
void Recorder::push_module(std::int32_t module) {
  forget_failure();
  place.modules.push_back(module);
}
std::int32_t Recorder::current_module() const {
  return place.modules.empty() ? trace::kNone : place.modules.back();
}

trace::ScopePoint Recorder::scope_point() const {
  const std::lock_guard lock(mutex_);
  return {trace_.scopes.size(), place.thread};
}

bool Recorder::enter_backward_node(std::int32_t module) {
  const bool recorded = is_in_optimizer_step();
  if (recorded) begin(trace::ScopeKind::kBackwardNode);
  push_module(module);
  return recorded;
}
void Recorder::exit_backward_node(bool recorded) {
  exit_module();
  if (recorded) end(trace::ScopeKind::kBackwardNode);
}

void Recorder::enter_update() { begin(trace::ScopeKind::kUpdate); }
void Recorder::exit_update() { end(trace::ScopeKind::kUpdate); }
void Recorder::enter_recompute() { begin(trace::ScopeKind::kRecomputation); }
void Recorder::exit_recompute() { end(trace::ScopeKind::kRecomputation); }

void Recorder::name_storage(const at::Tensor& tensor, trace::Role role, const std::string& name) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  if (name.size() > kLongestText) return name_storage(tensor, role, shortened(name));
  add_name(reinterpret_cast<std::uint64_t>(tensor.storage().data()),
           {.role = role,
            .name = name,
            .shape = shape_text(tensor),
            .dtype = dtype_word(tensor.scalar_type())});
}

void Recorder::name_memory(std::uint64_t address, trace::Role role, const std::string& name) {
  add_name(address, {.role = role, .name = name, .shape = {}, .dtype = {}});
}

void Recorder::add_name(std::uint64_t address, trace::Name name) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (!recording_ || found == live_.end()) return;
  // Gradients and state are named again in every step.
  auto& names = found->second.names;
  const bool known = std::any_of(names.begin(), names.end(), [&](std::size_t index) {
    return trace_.names[index].role == name.role && trace_.names[index].name == name.name;
  });
  if (known) return;
  names.push_back(trace_.names.size());
  name.event = found->second.event;
  trace_.names.push_back(std::move(name));
}

std::int32_t Recorder::intern_module(const std::string& path) {
  const std::lock_guard lock(mutex_);
  return intern(path, modules_, trace_.modules);
}

std::int32_t Recorder::intern_operator(const char* name) {
  const std::lock_guard lock(mutex_);
  return intern(name, operators_, trace_.operators);
}

void Recorder::push_operator(std::int32_t op) {
  forget_failure();
  place.operators.push_back(op);
}
void Recorder::pop_operator() {
  note_unwinding();
  place.operators.pop_back();
}

// The first scope that an exception leaves is the innermost. One for the process and not one a
// thread: backward of a CUDA device throws on a thread of its own, and the exception is thrown
// again on the thread that asked for backward, out of scopes that lie further out.
void Recorder::note_unwinding() {
  if (std::uncaught_exceptions() == 0 || has_failure_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  failure_ = place_of(trace_.events.size(), current_module(), current_operator());
  has_failure_ = true;
}

// Work goes on: whoever caught the exception dealt with it. Not while it still unwinds, when
// destructors may run operators.
void Recorder::forget_failure() {
  if (!has_failure_.load(std::memory_order_relaxed) || std::uncaught_exceptions() > 0) return;
  const std::lock_guard lock(mutex_);
  failure_.reset();
  has_failure_ = false;
}

std::optional<FailurePlace> Recorder::failure_place() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

// The innermost operator that is not a mere factory; the outermost when all are. Called with the
// lock held.
std::int32_t Recorder::current_operator() const {
  for (auto op = place.operators.rbegin(); op != place.operators.rend(); ++op) {
    if (!is_factory(trace_.operators[static_cast<std::size_t>(*op)])) return *op;
  }
  return place.operators.empty() ? trace::kNone : place.operators.front();
}

// Called with the lock held.
FailurePlace Recorder::place_of(std::uint64_t event, std::int32_t module, std::int32_t op) const {
  const auto at = trace::phase_at(trace_.scopes, event);
  FailurePlace found;
  found.phase = at.phase;
  found.step = at.step;
  if (module != trace::kNone) found.module = trace_.modules[static_cast<std::size_t>(module)];
  if (op != trace::kNone) found.op = trace_.operators[static_cast<std::size_t>(op)];
  return found;
}

std::optional<FailurePlace> Recorder::out_of_memory_place() const {
  const std::lock_guard lock(mutex_);
  const auto failure = last_out_of_memory(trace_.events);
  if (!failure) return std::nullopt;
  const trace::Event& event = trace_.events[*failure];
  return place_of(*failure, event.module, event.op);
}

void Recorder::end_at_out_of_memory() {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  live_.clear();
  const auto failure = last_out_of_memory(trace_.events);
  if (!failure) return;
  const auto step_of = [&](std::uint64_t event) {
    return trace::phase_at(trace_.scopes, event).step;
  };
  if (step_of(*failure) != step_of(trace_.events.size())) return;
  const auto end = *failure + 1;
  trace_.events.resize(end);
  std::erase_if(trace_.names, [&](const trace::Name& name) { return name.event >= end; });
  std::erase_if(trace_.scopes, [&](const trace::ScopeMark& mark) { return mark.event >= end; });
}

trace::Trace Recorder::take() {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  live_.clear();
  trace::decide_phases(trace_);
  return std::move(trace_);
}

}  // namespace peakbench::recording
