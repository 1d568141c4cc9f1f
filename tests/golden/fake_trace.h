// Traces as a training step would leave them, small or large, without training anything.
#pragma once

#include "trace/trace.h"

namespace peakbench::golden {

struct FakeTraining {
  int layers = 4, steps = 3;
  std::int64_t layer_bytes = 64 << 20, activation_bytes = 24 << 20;
  bool foreach = true;             // the update makes temporaries as large as all parameters
  bool fused_in_backward = false;  // gradients are freed inside backward
  int temporaries = 2;             // small ones an operator
  bool irregular = false;          // temporaries of many sizes that outlive one another
  bool emulated = false;           // a card: slack, a workspace, segments, no times
};

trace::Trace fake_trace(const FakeTraining& training);

}  // namespace peakbench::golden
