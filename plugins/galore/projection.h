// A matrix's gradient to low rank and back. Source: galore_torch/galore_projector.py (GaLore 1.0),
// proj_type "std".
#pragma once

#include <ATen/core/Tensor.h>

namespace peakbench::galore {

// Of an (m, n) matrix, from the left where m < n, from the right otherwise: the shorter side
// becomes `rank`.
class Projection {
 public:
  Projection(const at::Tensor& matrix, std::int64_t rank);

  std::vector<std::int64_t> low_rank_shape() const;
  // The `rank` leading singular vectors of the gradient's shorter side. In fp32 whatever the
  // gradient's dtype; the decomposition's own results are gone when this returns (the original
  // keeps a view of them, and so all of them).
  void fit(const at::Tensor& gradient);
  at::Tensor project(const at::Tensor& gradient) const;  // (m, n) -> low_rank_shape()
  at::Tensor back(const at::Tensor& low_rank) const;     // low_rank_shape() -> (m, n)

  // (m, rank) or (rank, n), in the gradient's dtype; undefined before the first fit.
  at::Tensor vectors;

 private:
  std::int64_t rows_, columns_, rank_;
  bool from_left_;
};

}  // namespace peakbench::galore
