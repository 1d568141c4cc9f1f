// Values that go to other processes of the program and come from them: the emulated NCCL asks.
#pragma once

#include <ATen/core/ivalue.h>

namespace peakbench::values {

// The storages of a collective's tensors, while PyTorch's operator for it runs on this thread: NCCL
// is told addresses only.
void begin_collective(c10::ArrayRef<const c10::IValue> arguments);
void end_collective();
// New memory, which the collective may use on its way.
void add_to_collective(const at::Tensor& tensor);

void answer_exchange();

}  // namespace peakbench::values
