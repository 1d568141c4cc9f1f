#include "device/recorder.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string_view>
#include <vector>

#include "device/dtype_words.h"
#include "text/bounded_text.h"
#include "trace/lifetimes.h"

namespace peakbench::device {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Where a thread is. Thread-local because backward of a CUDA device runs on a thread of its own.
struct Place {
  std::vector<std::int32_t> modules, operators;
  int updates = 0, recomputes = 0, backward_nodes = 0;
  std::int32_t recompute = trace::kNone;
};
thread_local Place place;

// A plugin's name, short enough to be taken as it is the next time.
std::string shortened(std::string_view name) {
  constexpr std::size_t kRoomForCount = 64;
  return bounded(name, kLongestText - kRoomForCount);
}

trace::Role role_of(StorageRole role) {
  switch (role) {
    case StorageRole::kParameter:
      return trace::Role::kParameter;
    case StorageRole::kBuffer:
      return trace::Role::kBuffer;
    case StorageRole::kGradient:
      return trace::Role::kGradient;
    case StorageRole::kOptimizerState:
      return trace::Role::kOptimizerState;
    case StorageRole::kInput:
      return trace::Role::kInput;
  }
  return trace::Role::kParameter;
}

std::string shape_text(const at::Tensor& tensor) {
  std::string text = "[";
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.size(i));
  return text + "]";
}

// Operators that only make memory for another: the one that asked for it says more.
bool is_factory(std::string_view name) {
  for (const char* prefix : {"aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::new_",
                             "aten::resize", "aten::scalar_tensor", "aten::zero_", "aten::fill_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
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
  event.phase = static_cast<trace::Phase>(phase_.load());
  event.step = step_;
  event.in_update = place.updates > 0;
  event.in_recompute = place.recomputes > 0;
  event.recompute = event.in_recompute ? place.recompute : trace::kNone;
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

void Recorder::enter_module(const torch::nn::Module& module) {
  std::int32_t index = trace::kNone;
  if (const auto found = modules_.find(&module); found != modules_.end()) index = found->second;
  if (is_in_optimizer_step()) see_forward();
  push_module(index);
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

void Recorder::enter_backward_node(std::int32_t module) {
  if (is_in_optimizer_step()) see_backward();
  ++place.backward_nodes;
  push_module(module);
}
void Recorder::exit_backward_node() {
  exit_module();
  --place.backward_nodes;
}

// The update of a schedule in backward is part of its backward, in a second one too.
void Recorder::enter_update() {
  if (optimizer_step_ && place.backward_nodes == 0)
    phase_ = static_cast<std::uint8_t>(trace::Phase::kOptimizerStep);
  ++place.updates;
  ++updates_;
}
void Recorder::exit_update() {
  --place.updates;
  --updates_;
}

bool Recorder::is_in_optimizer_step() const {
  return optimizer_step_.load(std::memory_order_relaxed) && updates_ == 0;
}

// Hooks of a backward, and blocks that it runs again, enter modules too.
void Recorder::see_forward() {
  if (place.recomputes > 0 || place.backward_nodes > 0 || !at::GradMode::is_enabled()) return;
  phase_ = static_cast<std::uint8_t>(trace::Phase::kForward);
}
void Recorder::see_backward() {
  if (place.recomputes == 0) phase_ = static_cast<std::uint8_t>(trace::Phase::kBackward);
}

void Recorder::enter_recompute() {
  ++place.recomputes;
  place.recompute = recomputations_++;
}
void Recorder::exit_recompute() { --place.recomputes; }

void Recorder::name_storage(const at::Tensor& tensor, StorageRole role, const std::string& name) {
  if (!tensor.defined() || !tensor.has_storage()) return;
  if (name.size() > kLongestText) return name_storage(tensor, role, shortened(name));
  const auto address = reinterpret_cast<std::uint64_t>(tensor.storage().data());
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  if (!recording_ || found == live_.end()) return;
  // Gradients and state are named again in every step.
  auto& names = found->second.names;
  const bool known = std::any_of(names.begin(), names.end(), [&](std::size_t index) {
    return trace_.names[index].role == role_of(role) && trace_.names[index].name == name;
  });
  if (known) return;
  names.push_back(trace_.names.size());
  trace_.names.push_back({.event = found->second.event,
                          .role = role_of(role),
                          .name = name,
                          .shape = shape_text(tensor),
                          .dtype = dtype_word(tensor.scalar_type())});
}

void Recorder::set_phase(trace::Phase phase, std::int32_t step) {
  optimizer_step_ = phase == trace::Phase::kOptimizerStep;
  phase_ = static_cast<std::uint8_t>(phase);
  step_ = step;
}

void Recorder::name_modules(const torch::nn::Module& root) {
  const auto modules = root.named_modules(std::string(), /*include_self=*/false);
  const std::lock_guard lock(mutex_);
  const auto add = [&](const torch::nn::Module* module, const std::string& path) {
    modules_[module] = static_cast<std::int32_t>(trace_.modules.size());
    trace_.modules.push_back(bounded(path));
  };
  add(&root, "");
  for (const auto& item : modules) add(item.value().get(), item.key());
}

std::int32_t Recorder::intern_operator(const char* name) {
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] =
      operators_.try_emplace(name, static_cast<std::int32_t>(trace_.operators.size()));
  if (is_new) trace_.operators.push_back(bounded(name));
  return found->second;
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
  FailurePlace found;
  found.phase = static_cast<trace::Phase>(phase_.load());
  found.step = step_;
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  if (const auto module = current_module(); module != trace::kNone)
    found.module = trace_.modules[static_cast<std::size_t>(module)];
  if (const auto op = current_operator(); op != trace::kNone)
    found.op = trace_.operators[static_cast<std::size_t>(op)];
  failure_ = std::move(found);
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

void Recorder::describe_place(result::OutOfMemory& record) const {
  const std::lock_guard lock(mutex_);
  for (auto event = trace_.events.rbegin(); event != trace_.events.rend(); ++event) {
    if (event->kind != trace::EventKind::kOutOfMemory) continue;
    record.phase = trace::to_string(event->phase);
    record.step = std::max(0, event->step);  // before the first step there is none
    if (event->module != trace::kNone)
      record.module = trace_.modules[static_cast<std::size_t>(event->module)];
    if (event->op != trace::kNone)
      record.op = trace_.operators[static_cast<std::size_t>(event->op)];
    return;
  }
}

void Recorder::end_at_out_of_memory() {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  live_.clear();
  const auto failure = std::find_if(
      trace_.events.rbegin(), trace_.events.rend(),
      [](const trace::Event& event) { return event.kind == trace::EventKind::kOutOfMemory; });
  if (failure == trace_.events.rend() || failure->step != step_) return;
  trace_.events.erase(failure.base(), trace_.events.end());
  std::erase_if(trace_.names,
                [&](const trace::Name& name) { return name.event >= trace_.events.size(); });
}

trace::Trace Recorder::take() {
  const std::lock_guard lock(mutex_);
  recording_ = false;
  live_.clear();
  return std::move(trace_);
}

}  // namespace peakbench::device
