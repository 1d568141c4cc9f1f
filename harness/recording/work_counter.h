// Counts what the operators of PyTorch do while it is on: floating-point operations, bytes read and
// written. It takes the shapes of every operator's arguments, so it is on for a part of a program
// only, such as one step. One a process.
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "recording/recorder.h"
#include "trace/phases.h"

namespace peakbench::recording {

// Counts of a device until now; the rest is 0.
using DeviceCounts = std::array<std::uint64_t, 8>;

// An operator that did work. Operators called by a counted one are not counted in addition.
// Operators that only make a view or memory do no work.
//
// An operator counts each byte once, however often its kernels read it, with the tensor's layout:
// an expanded dimension counts as one. A lookup by indices (an embedding, a gathered row) reads as
// many bytes as it writes. Tensors on other devices are left out.
struct OperatorWork {
  trace::ScopePoint place;
  bool counts = false;  // false: the end of a part only, for `device_counts`
  std::int64_t flops = 0;
  std::int16_t precision = -1;  // of the product, in WorkCounter's list
  std::int64_t read_bytes = 0, written_bytes = 0;
  // Of these, what it cannot do without whatever the values are, for a lower bound.
  std::int64_t sure_read_bytes = 0, sure_written_bytes = 0;
  DeviceCounts device_counts{};  // at its end
};

struct CountedWork {
  std::vector<OperatorWork> operators;  // in the order in which they ended
  // Words for dtypes; "tf32" where a product of fp32 may be one of TF32.
  std::vector<std::string> precisions;
  // Operators that multiply matrices and have no formula: their FLOPs are missing.
  std::map<std::string, std::int64_t> without_formula;
};

class WorkCounter {
 public:
  // `read_counts` may be empty.
  WorkCounter(Recorder& recorder, c10::Device device, std::function<DeviceCounts()> read_counts);

  void begin();  // with no operator under way
  // What the device counted since the last operator belongs to the phase until now.
  void end_part();
  CountedWork end();

 private:
  std::uint64_t handle_ = 0;
};

}  // namespace peakbench::recording
