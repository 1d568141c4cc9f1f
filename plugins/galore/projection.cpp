#include "projection.h"

#include <ATen/ATen.h>

namespace peakbench::galore {

Projection::Projection(const at::Tensor& matrix, std::int64_t rank)
    : rows_(matrix.size(0)), columns_(matrix.size(1)), rank_(rank), from_left_(rows_ < columns_) {}

std::vector<std::int64_t> Projection::low_rank_shape() const {
  return from_left_ ? std::vector{rank_, columns_} : std::vector{rows_, rank_};
}

void Projection::fit(const at::Tensor& gradient) {
  const auto [left, values, right] =
      at::linalg_svd(gradient.to(at::kFloat), /*full_matrices=*/false);
  const at::Tensor leading = from_left_ ? left.narrow(1, 0, rank_) : right.narrow(0, 0, rank_);
  vectors = leading.to(gradient.scalar_type(), /*non_blocking=*/false, /*copy=*/true,
                       at::MemoryFormat::Contiguous);
}

at::Tensor Projection::project(const at::Tensor& gradient) const {
  return from_left_ ? at::matmul(vectors.t(), gradient) : at::matmul(gradient, vectors.t());
}

at::Tensor Projection::back(const at::Tensor& low_rank) const {
  return from_left_ ? at::matmul(vectors, low_rank) : at::matmul(low_rank, vectors);
}

}  // namespace peakbench::galore
