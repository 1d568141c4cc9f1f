// The fused loss against ATen's own: loss and gradients, whatever the size of a chunk. Its memory
// is held against the same equations in Python by the parity tests.
#include "linear_cross_entropy.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "worker/engine.h"

namespace peakbench::linear_cross_entropy {
namespace {

const bool kEngineInstalled = [] {
  worker::install_engine();  // before any autograd use
  return true;
}();

// 2 sequences of 5 tokens, 7 words, 3 features; the third and the last target do not count.
struct Problem {
  at::Tensor hidden = at::randn({2, 5, 3}).set_requires_grad(true);
  at::Tensor weight = at::randn({7, 3}).set_requires_grad(true);
  at::Tensor bias = at::randn({7}).set_requires_grad(true);
  at::Tensor targets = at::randint(7, {2, 5}, at::kLong);

  Problem() {
    targets[0][2] = -100;
    targets[1][4] = -100;
  }
  OutputHead head() const {
    OutputHead head;
    head.weight = weight;
    head.bias = bias;
    return head;
  }
  at::Tensor plain() const {
    return at::cross_entropy_loss(at::linear(hidden, weight, bias).view({-1, 7}), targets.view(-1));
  }
  // Of the loss, and what backward leaves behind.
  std::vector<at::Tensor> results(const at::Tensor& loss) {
    torch::autograd::backward({loss}, {});
    std::vector<at::Tensor> found{loss.detach()};
    for (at::Tensor* leaf : {&hidden, &weight, &bias}) {
      found.push_back(leaf->grad());
      leaf->mutable_grad().reset();
    }
    return found;
  }
};

double distance(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, (a[i] - b[i]).abs().max().item<double>());
  return largest;
}

class ChunkSizes : public testing::TestWithParam<std::int64_t> {};

TEST_P(ChunkSizes, LossAndGradientsAreThoseOfTheWholeThing) {
  Problem problem;
  const auto expected = problem.results(problem.plain());
  const auto fused =
      problem.results(fused_loss(problem.head(), problem.hidden, problem.targets, GetParam()));
  EXPECT_LT(distance(fused, expected), 1e-6);
}
INSTANTIATE_TEST_SUITE_P(, ChunkSizes, testing::Values(0, 1, 3, 10, 64));

TEST(FusedLoss, AnotherTargetIsNoticed) {
  Problem problem;
  const auto expected = problem.results(problem.plain());
  problem.targets[0][0] = (problem.targets[0][0] + 1).remainder(7);
  const auto fused =
      problem.results(fused_loss(problem.head(), problem.hidden, problem.targets, 3));
  EXPECT_GT(distance(fused, expected), 1e-3);
}

TEST(FusedLoss, AScaledLossScalesTheGradients) {
  Problem problem;
  const auto expected = problem.results(problem.plain() * 3);
  const auto fused =
      problem.results(fused_loss(problem.head(), problem.hidden, problem.targets, 4) * 3);
  EXPECT_LT(distance(fused, expected), 1e-5);
}

TEST(FusedLoss, AFrozenHeadHasNoGradient) {
  Problem problem;
  problem.weight.set_requires_grad(false);
  problem.bias.set_requires_grad(false);
  torch::autograd::backward({fused_loss(problem.head(), problem.hidden, problem.targets, 4)}, {});
  EXPECT_TRUE(problem.hidden.grad().defined());
  EXPECT_FALSE(problem.weight.grad().defined());
}

TEST(FusedLoss, ASecondBackwardIsRefused) {
  Problem problem;
  const at::Tensor loss = fused_loss(problem.head(), problem.hidden, problem.targets, 4);
  torch::autograd::backward({loss}, {});
  EXPECT_THROW(torch::autograd::backward({loss}, {}), c10::Error);
}

TEST(FusedLoss, AutocastMultipliesInItsDtypeAndGradientsHaveTheParameters) {
  Problem problem;
  const auto expected = problem.results(problem.plain());
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor loss = fused_loss(problem.head(), problem.hidden, problem.targets, 4);
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  const auto fused = problem.results(loss);
  for (const at::Tensor& tensor : fused) EXPECT_EQ(tensor.scalar_type(), at::kFloat);
  EXPECT_LT(distance(fused, expected), 0.1);
  EXPECT_GT(distance(fused, expected), 1e-6);
}

TEST(TokensOfAChunk, TakeForTheirLogitsAboutWhatAllHiddenStatesTake) {
  EXPECT_EQ(tokens_of_a_chunk(16384, 4096, 32000), 2048);  // Liger's own example
  EXPECT_EQ(tokens_of_a_chunk(256, 896, 151936), 2);       // 256 / 170, rounded up
  EXPECT_EQ(tokens_of_a_chunk(5, 100, 7), 8);              // one chunk
}

}  // namespace
}  // namespace peakbench::linear_cross_entropy
