// The nearest half-orthogonal matrix, approximately. Source: torch/optim/_muon.py,
// _zeropower_via_newtonschulz. Method: https://kellerjordan.github.io/posts/muon/
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench::muon {

// (n, m), any floating dtype -> (n, m) in bfloat16, every singular value near one, after `steps`
// quintic Newton-Schulz iterations. Beside the result it takes, in bfloat16 and with k = min(n, m):
// twice the result's size and two to three k x k matrices.
at::Tensor orthogonalise(const at::Tensor& matrix, std::int64_t steps);

}  // namespace peakbench::muon
