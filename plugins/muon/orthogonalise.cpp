#include "orthogonalise.h"

#include <ATen/ATen.h>

namespace peakbench::muon {

at::Tensor orthogonalise(const at::Tensor& matrix, std::int64_t steps) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315, kEps = 1e-7;
  const bool tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = matrix.to(at::kBFloat16);
  if (tall) x = x.t();
  x.div_(at::linalg_vector_norm(x).clamp(kEps));  // spectral norm at most one
  // Both live on into the next turn until they are assigned again, as the names do in _muon.py.
  at::Tensor gram, gram_update;
  for (std::int64_t step = 0; step < steps; ++step) {
    gram = at::matmul(x, x.t());
    gram_update = at::addmm(gram, gram, gram, kB, kC);
    x = at::addmm(x, gram_update, x, kA);
  }
  return tall ? x.t() : x;
}

}  // namespace peakbench::muon
