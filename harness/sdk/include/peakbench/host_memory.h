// Memory beside the device, for what a strategy keeps there.
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench {

// Host memory of the tensor's shape, strides and dtype, its values undefined: page-locked where the
// tensor is on a card, so that copies between the two need no detour; ordinary where it is on the
// CPU, where host and device are one and the copy is a rehearsal.
at::Tensor empty_on_host(const at::Tensor& tensor);

// A copy there, never the tensor itself. Returns once the values have arrived: whoever reads them
// on the CPU need not know of streams.
at::Tensor copy_on_host(const at::Tensor& tensor);

}  // namespace peakbench
