// A recorded trace of one process: every allocation and free, names that bind to allocation
// events, and the scopes that the code was in.
//
// Plain data, no torch: recorded by harness/recording, stored as SQLite (trace/trace_file.h),
// analysed by pure functions (trace/phases.h, trace/lifetimes.h). An event's sequence number is its
// index in `events`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace peakbench::trace {

enum class EventKind : std::uint8_t {
  kAlloc,
  kFree,           // the bytes may be given out again (free_completed on CUDA)
  kFreeRequested,  // CUDA: freed, no longer allocated; its kFree follows, at once or after a stream
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOutOfMemory,  // requested_bytes: asked for; address: what the card had free, 0 where unknown
};
inline constexpr std::size_t kEventKindCount = 8;

enum class Phase : std::uint8_t {
  kBuild,
  kForward,
  kBackward,
  kOptimizerStep,
  // Of programs alone:
  kData,        // between an update and the next forward
  kEvaluation,  // a model called without gradients, or not in training
  kGeneration,  // an evaluation that a function named `generate` asked for
  kCheckpoint   // torch.save
};
inline constexpr std::size_t kPhaseCount = 8;

// The role of a storage, reported by the recipe, or by PyTorch for handles of its libraries. All
// other categories are decided from lifetimes (trace/lifetimes.h).
//
// - kKept: kept by a strategy for itself, or a program's buffer that torch.cat makes again.
// - kCommunication: sent and received by a program's collectives.
enum class Role : std::uint8_t {
  kParameter,
  kBuffer,
  kGradient,
  kOptimizerState,
  kInput,
  kWorkspace,
  kKept,
  kCommunication
};
inline constexpr std::size_t kRoleCount = 8;

inline constexpr std::int32_t kNone = -1;
inline constexpr int kOwnSpace = -1;  // as an argument: Trace::own_space

// Where the code is, as it happens; phases are decided from it afterwards (trace/phases.h).
enum class ScopeKind : std::uint8_t {
  kPhase,          // what the program says that it does from here on
  kModule,         // a module entered with grad mode on
  kBackwardNode,   // a node of autograd's backward
  kUpdate,         // a parameter update, wherever it happens
  kRecomputation,  // a checkpointed block runs again
  kCapture,        // of a CUDA graph
  kLargerCopy,     // of a floating-point tensor to a larger dtype
  kFrozenCopy      // of a parameter that needs no gradient to a smaller dtype
};
inline constexpr std::size_t kScopeKindCount = 8;

struct Event {
  EventKind kind = EventKind::kAlloc;
  Phase phase = Phase::kBuild;
  bool in_update = false;          // inside a parameter update, wherever it happens
  bool in_recompute = false;       // inside the recomputation of a checkpointed block
  std::int16_t space = 0;          // index in Trace::spaces
  std::int32_t step = kNone;       // 0-based; kNone while building
  std::int32_t module = kNone;     // index in Trace::modules
  std::int32_t op = kNone;         // index in Trace::operators
  std::int32_t stream = 0;         // small index in order of appearance; 0 on the CPU
  std::int32_t recompute = kNone;  // which recomputation (counts up), where in_recompute
  std::int32_t thread = 0;         // small index in order of appearance
  std::int32_t stack = kNone;      // index in Trace::frames: the innermost frame
  std::int32_t range = kNone;      // index in Trace::ranges: the innermost
  std::int32_t pool = kNone;       // a private pool of the allocator, in order of appearance
  std::uint64_t address = 0;
  std::int64_t requested_bytes = 0;
  // Alloc: the block's size; on the CPU equal to requested_bytes. Segments: the segment's. A free
  // may leave both sizes 0; a block size given with a free must be the allocation's.
  std::int64_t block_bytes = 0;
  std::int64_t time_ns = -1;  // since the first event; -1 on an emulated card
};

struct Name {
  std::uint64_t event = 0;  // the allocation it names
  Role role = Role::kParameter;
  std::string name;   // `encoder.layers.0.mlp.0.weight`
  std::string shape;  // `[1024, 4096]`, may be empty
  std::string dtype;  // `fp32`, may be empty
};

// The begin or end of a scope on a thread, before the event of this number. kPhase and kModule have
// no end, as the rules need none. Recorded only where a scope can matter:
//
// - Modules and nodes: inside an optimizer step, where they change a phase.
// - Modules also where a program's evaluation begins that records a graph which no backward runs.
//   The same for such a call in training, until the next phase is reported.
// - Copies: in programs.
struct ScopeMark {
  std::uint64_t event = 0;
  ScopeKind kind = ScopeKind::kPhase;
  bool ends = false;
  Phase phase = Phase::kBuild;  // of kPhase, as is its step
  std::int32_t step = kNone;
  std::int32_t thread = 0;
};

// A frame of a Python call stack, in the tree of all of them.
struct StackFrame {
  std::int32_t parent = kNone;    // index in Trace::frames, before this one; who called
  std::int32_t file = kNone;      // index in Trace::files
  std::int32_t function = kNone;  // index in Trace::functions
  std::int32_t line = 0;          // 0 where unknown

  bool operator==(const StackFrame&) const = default;
};

// What a program calls a stretch of itself (record_function, NVTX, peakbench.phase), in the tree of
// all of them.
struct Range {
  std::int32_t parent = kNone;  // index in Trace::ranges, before this one; what it is within
  std::string name;

  bool operator==(const Range&) const = default;
};

// Both ends are in it.
struct StepSpan {
  std::int32_t first = 0;
  std::int32_t last = 0;

  bool operator==(const StepSpan&) const = default;
};

struct Trace {
  std::string device;     // as in the case id
  bool emulated = false;  // events are numbered, not clocked
  // Of a program, whose figures count from its beginning to its end: nothing was reset after a
  // build.
  bool counts_build = false;
  // The steps that figures cover; empty: all. Of everything outside, the trace has only a part:
  // what is alive in these steps.
  std::vector<StepSpan> counted_steps;
  std::vector<std::string> spaces;
  int own_space = 0;  // index in spaces: the case's own, whose figures are the headline
  std::vector<std::string> modules, operators;
  std::vector<Event> events;
  std::vector<Name> names;
  std::vector<StackFrame> frames;  // empty where no stacks were recorded
  std::vector<std::string> files, functions;
  std::vector<Range> ranges;      // empty where the program names none
  std::vector<ScopeMark> scopes;  // in the order in which they happened
};

// Whether what is reached in this step (kNone: before the first) counts for a figure.
inline bool is_counted(const Trace& trace, std::int32_t step) {
  return trace.counted_steps.empty() ||
         std::ranges::any_of(trace.counted_steps, [step](const StepSpan& span) {
           return span.first <= step && step <= span.last;
         });
}

// Of an index in `words`; empty for kNone.
inline std::string word_at(const std::vector<std::string>& words, std::int32_t index) {
  return index == kNone ? std::string() : words[static_cast<std::size_t>(index)];
}

inline int space_or_own(const Trace& trace, int space) {
  return space == kOwnSpace ? trace.own_space : space;
}

}  // namespace peakbench::trace
