// What the events of a snapshot are part of, by their stacks. For the module's own use. Pure.
//
// Source of the names: torch/nn/modules/module.py, torch/autograd/__init__.py, torch/optim/
// optimizer.py, torch/utils/checkpoint.py; the same from PyTorch 1.13 to 2.11.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/trace.h"

namespace peakbench::programs {

// Of history_of()'s events: of what was there before the recording, and of autograd's engine.
inline constexpr std::int64_t kBeginning = INT64_MIN;  // Event::time_ns
inline constexpr std::int32_t kEngineThread = 1;       // Event::thread; of all others 0

// What a frame shows together with its callers.
struct FrameFacts {
  std::int32_t root = trace::kNone;    // the outermost frame
  std::int32_t caller = trace::kNone;  // of the outermost module: the frame that called it
  bool calls_module = false;
  bool in_backward = false;  // of a thread that waits for autograd's engine
  bool recomputes = false;   // a checkpointed block
  bool made_by_optimizer =
      false;  // in an optimizer's step(), and in no code but that and PyTorch's
};

enum class Work : std::uint8_t { kUnknown, kOther, kCall, kBackward };

// Consecutive events of one call of a model, or of one backward. Those that show nothing are part
// of what is around them.
struct WorkSpan {
  Work work = Work::kOther;
  std::uint64_t first = 0, end = 0;
  std::int32_t caller = trace::kNone;  // of a call
  bool continues = false;              // of a call: the line of the call before it goes on
  bool is_forward = false;             // of a call: a backward differentiates it

  bool contains(std::uint64_t event) const { return first <= event && event < end; }
};

struct SnapshotWork {
  std::vector<FrameFacts> frames;    // by frame
  std::vector<Work> works;           // by event
  std::vector<std::uint64_t> freed;  // by allocation: the event of its free, or events.size()
  std::vector<WorkSpan> spans;       // calls and backwards, in order

  const FrameFacts& facts(const trace::Event& event) const;
  bool has_backward() const;
};

// Backward is what has frames of autograd's engine. Where no frames of C++ were recorded, it is
// what has no frames at all in a program whose other events have, and all between the two events
// of the gradient that backward() begins with.
SnapshotWork work_of(const trace::Trace& trace);

}  // namespace peakbench::programs
