// Which saved tensors go, and what comes back. Bytes and order are held against stock PyTorch by
// the parity tests.
#include "activation_offload.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace peakbench::activation_offload {
namespace {

TEST(Choice, LeavesWeightsAndSmallTensors) {
  const Choice choice{.min_bytes = 1024};
  EXPECT_TRUE(choice.takes(at::zeros({256}), false));
  EXPECT_FALSE(choice.takes(at::zeros({256}), true));
  EXPECT_FALSE(choice.takes(at::zeros({255}), false));
}

// Saves a transposed matrix, changes it, and brings back what was saved.
at::Tensor saved_and_back(SavedTensorHooks& hooks, const at::Tensor& matrix) {
  at::Tensor transposed = matrix.clone().t();
  const auto saved = hooks.pack(transposed, {});
  transposed.zero_();
  return saved->unpack();
}

TEST(Copies, AreTheirOwnWithTheTensorsStrides) {
  Copies copies(Choice{.min_bytes = 0});
  SaveOnCpu everything(true);
  const at::Tensor matrix = at::randn({3, 4});
  const at::Tensor back = saved_and_back(copies, matrix);
  const at::Tensor contiguous = saved_and_back(everything, matrix);
  EXPECT_TRUE(at::equal(back, matrix.t()));
  EXPECT_EQ(back.strides(), matrix.t().strides());
  EXPECT_TRUE(at::equal(contiguous, matrix.t()));
  EXPECT_TRUE(contiguous.is_contiguous());
}

}  // namespace
}  // namespace peakbench::activation_offload
