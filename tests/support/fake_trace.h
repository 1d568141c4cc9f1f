// Traces with known answers, written down event by event; for the tests of trace and reports.
//
//   FakeTrace fake("cuda:0");
//   auto weight = fake.named(trace::Role::kParameter, "linear.weight").alloc(1000, 1024);
//   fake.forward(0).at("linear", "aten::linear");
//   auto hidden = fake.alloc(100, 512);
//   fake.backward(0).free(hidden);
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "trace/trace.h"

namespace peakbench::trace {

class FakeTrace {
 public:
  using Allocation = std::uint64_t;  // the event's number

  explicit FakeTrace(std::string space = "cpu") {
    trace_.device = space;
    trace_.spaces.push_back(std::move(space));
  }

  FakeTrace& build() { return phase(Phase::kBuild, kNone); }
  FakeTrace& forward(int step) { return phase(Phase::kForward, step); }
  FakeTrace& backward(int step) { return phase(Phase::kBackward, step); }
  FakeTrace& optimizer_step(int step) { return phase(Phase::kOptimizerStep, step); }
  FakeTrace& data(int step) { return phase(Phase::kData, step); }
  FakeTrace& evaluation(int step) { return phase(Phase::kEvaluation, step); }
  FakeTrace& generation(int step) { return phase(Phase::kGeneration, step); }
  FakeTrace& checkpoint(int step) { return phase(Phase::kCheckpoint, step); }

  // Where the next events happen, until the next call; empty: nowhere in particular.
  FakeTrace& at(const std::string& module, const std::string& op = "") {
    next_.module = index(trace_.modules, module);
    next_.op = index(trace_.operators, op);
    return *this;
  }
  FakeTrace& in(const std::string& space) {
    next_.space = static_cast<std::int16_t>(index(trace_.spaces, space));
    return *this;
  }
  // Makes this space the case's own; the first one is until then.
  FakeTrace& own(const std::string& space) {
    trace_.own_space = index(trace_.spaces, space);
    return *this;
  }
  // The call stack of the next events, the outermost frame first; none: unknown.
  FakeTrace& from(const std::vector<StackFrame>& frames) {
    next_.stack = kNone;
    for (auto frame : frames) {
      frame.parent = next_.stack;
      auto at = std::find(trace_.frames.begin(), trace_.frames.end(), frame);
      if (at == trace_.frames.end()) at = trace_.frames.insert(trace_.frames.end(), frame);
      next_.stack = static_cast<std::int32_t>(at - trace_.frames.begin());
    }
    return *this;
  }
  // For `from`.
  StackFrame frame(const std::string& file, const std::string& function, std::int32_t line) {
    return {kNone, index(trace_.files, file), index(trace_.functions, function), line};
  }
  // The ranges of the next events, the outermost first; none: in no range.
  FakeTrace& within(const std::vector<std::string>& names) {
    next_.range = kNone;
    auto& ranges = trace_.ranges;
    for (const auto& name : names) {
      const Range range{next_.range, name};
      auto at = std::find(ranges.begin(), ranges.end(), range);
      if (at == ranges.end()) at = ranges.insert(ranges.end(), range);
      next_.range = static_cast<std::int32_t>(at - ranges.begin());
    }
    return *this;
  }
  // The private pool of the next events, while a CUDA graph is captured; kNone: none, and none is.
  FakeTrace& capture(std::int32_t pool) {
    if ((next_.pool == kNone) != (pool == kNone))
      trace_.scopes.push_back(
          {.event = trace_.events.size(), .kind = ScopeKind::kCapture, .ends = pool == kNone});
    next_.pool = pool;
    return *this;
  }
  FakeTrace& recompute(int which) {
    next_.in_recompute = true;
    next_.recompute = which;
    return *this;
  }
  FakeTrace& end_recompute() {
    next_.in_recompute = false;
    next_.recompute = kNone;
    return *this;
  }
  FakeTrace& in_update(bool inside) {
    next_.in_update = inside;
    return *this;
  }

  // What the next allocation is called.
  FakeTrace& named(Role role, std::string name, std::string shape = "", std::string dtype = "") {
    pending_.push_back({0, role, std::move(name), std::move(shape), std::move(dtype)});
    return *this;
  }

  // A block of 0: as large as asked for. Every allocation gets an address of its own; `reuse` gives
  // it that of an earlier one.
  Allocation alloc(std::int64_t requested, std::int64_t block = 0) {
    const auto size = block == 0 ? requested : block;
    const auto address = next_address_;
    next_address_ += (static_cast<std::uint64_t>(size) / 512 + 1) * 512;
    return alloc_at(address, requested, size);
  }
  Allocation reuse(Allocation earlier, std::int64_t requested, std::int64_t block = 0) {
    return alloc_at(trace_.events[earlier].address, requested, block == 0 ? requested : block);
  }
  FakeTrace& free(Allocation allocation) { return end(EventKind::kFree, allocation); }
  FakeTrace& free_requested(Allocation allocation) {
    return end(EventKind::kFreeRequested, allocation);
  }
  FakeTrace& segment(EventKind kind, std::int64_t bytes, std::uint64_t address = 0x7f0000000000) {
    add(kind, address, bytes, bytes);
    return *this;
  }
  FakeTrace& out_of_memory(std::int64_t requested) {
    add(EventKind::kOutOfMemory, 0, requested, 0);
    return *this;
  }
  FakeTrace& emulated() {
    trace_.emulated = true;
    return *this;
  }

  const Trace& trace() const { return trace_; }
  Trace& trace() { return trace_; }

 private:
  FakeTrace& phase(Phase phase, int step) {
    next_.phase = phase;
    next_.step = step;
    return *this;
  }

  static std::int32_t index(std::vector<std::string>& words, const std::string& word) {
    if (word.empty()) return kNone;
    auto at = std::find(words.begin(), words.end(), word);
    if (at == words.end()) at = words.insert(words.end(), word);
    return static_cast<std::int32_t>(at - words.begin());
  }

  Allocation alloc_at(std::uint64_t address, std::int64_t requested, std::int64_t block) {
    const auto event = add(EventKind::kAlloc, address, requested, block);
    for (auto& name : pending_) {
      name.event = event;
      trace_.names.push_back(std::move(name));
    }
    pending_.clear();
    return event;
  }

  FakeTrace& end(EventKind kind, Allocation allocation) {
    const auto alloc = trace_.events.at(allocation);
    add(kind, alloc.address, alloc.requested_bytes, alloc.block_bytes);
    trace_.events.back().space = alloc.space;
    return *this;
  }

  std::uint64_t add(EventKind kind, std::uint64_t address, std::int64_t requested,
                    std::int64_t block) {
    auto event = next_;
    event.kind = kind;
    event.address = address;
    event.requested_bytes = requested;
    event.block_bytes = block;
    trace_.events.push_back(event);
    return trace_.events.size() - 1;
  }

  Trace trace_;
  Event next_;
  std::vector<Name> pending_;
  std::uint64_t next_address_ = 0x7f0000000000;
};

}  // namespace peakbench::trace
