// What operators of LibTorch are counted as doing. Sizes are small and every figure has a closed
// form.
#include "recording/work_counter.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <numeric>

namespace peakbench::recording {
namespace {

constexpr std::int64_t kFloat = 4, kIndex = 8;

class WorkCounterTest : public testing::Test {
 protected:
  static CountedWork count(const std::function<void()>& run) {
    counter().begin();
    run();
    return counter().end();
  }

  // The only operator that `run` is counted as.
  static OperatorWork only(const std::function<void()>& run) {
    const auto counted = count(run);
    OperatorWork found;
    int operators = 0;
    for (const auto& one : counted.operators) {
      if (!one.counts) continue;
      found = one;
      ++operators;
    }
    EXPECT_EQ(operators, 1);
    return found;
  }

  static std::int64_t flops(const CountedWork& counted) {
    return std::accumulate(
        counted.operators.begin(), counted.operators.end(), std::int64_t{0},
        [](std::int64_t sum, const OperatorWork& one) { return sum + one.flops; });
  }

  static void expect_bytes(const OperatorWork& one, std::int64_t read, std::int64_t written) {
    EXPECT_EQ(one.read_bytes, read);
    EXPECT_EQ(one.written_bytes, written);
  }

  static Recorder& recorder() {
    static auto* const one = new Recorder("cpu", "cpu", /*emulated=*/false);
    return *one;
  }

 private:
  static WorkCounter& counter() {
    static auto* const one = new WorkCounter(recorder(), c10::kCPU, {});
    return *one;
  }
};

TEST_F(WorkCounterTest, OfATinyNetwork) {
  const auto x = at::randn({8, 16});
  const auto first = at::randn({32, 16}).requires_grad_(),
             second = at::randn({4, 32}).requires_grad_();
  const auto counted = count([&] {
    const auto loss = at::linear(at::relu(at::linear(x, first)), second).sum();
    torch::autograd::backward({loss}, {});
  });
  const std::int64_t of_first = 2 * 8 * 16 * 32, of_second = 2 * 8 * 32 * 4;
  // Backward: both weights, and what lies between them; nobody asks for the input's gradient.
  EXPECT_EQ(flops(counted), 2 * of_first + 3 * of_second);
  EXPECT_EQ(counted.precisions, std::vector<std::string>{"fp32"});
  EXPECT_TRUE(counted.without_formula.empty());
}

TEST_F(WorkCounterTest, AConvolutionIsCountedOnce) {
  const auto x = at::randn({2, 3, 8, 8}).requires_grad_();
  const auto filter = at::randn({6, 3, 3, 3}).requires_grad_();
  at::Tensor y;
  const std::int64_t once = 2 * 2 * 6 * 3 * 3 * 3 * 6 * 6;
  EXPECT_EQ(flops(count([&] { y = at::conv2d(x, filter); })), once);
  EXPECT_EQ(flops(count([&] { torch::autograd::backward({y.sum()}, {}); })),
            once + 2 * 3 * 6 * 2 * 6 * 6 * 3 * 3);
}

TEST_F(WorkCounterTest, BytesAreThoseOfArgumentsAndOutputs) {
  const auto a = at::randn({8, 16}), b = at::randn({16, 32});
  const auto product = only([&] { at::mm(a, b); });
  expect_bytes(product, (8 * 16 + 16 * 32) * kFloat, 8 * 32 * kFloat);
  EXPECT_EQ(product.sure_read_bytes, product.read_bytes);
  EXPECT_EQ(product.sure_written_bytes, product.written_bytes);
}

TEST_F(WorkCounterTest, InPlaceReadsAndWrites) {
  const auto a = at::randn({8, 16}), b = at::randn({8, 16});
  expect_bytes(only([&] { a.add_(b); }), 2 * 8 * 16 * kFloat, 8 * 16 * kFloat);
  expect_bytes(only([&] { a.copy_(b); }), 8 * 16 * kFloat, 8 * 16 * kFloat);
  expect_bytes(only([&] { a.fill_(1); }), 0, 8 * 16 * kFloat);
  expect_bytes(only([&] { at::add_out(const_cast<at::Tensor&>(a), b, b); }), 8 * 16 * kFloat,
               8 * 16 * kFloat);
}

TEST_F(WorkCounterTest, WhatIsReadTwiceOrExpandedCountsOnce) {
  const auto a = at::randn({8, 16}), row = at::randn({16});
  expect_bytes(only([&] { at::mul(a, a); }), 8 * 16 * kFloat, 8 * 16 * kFloat);
  expect_bytes(only([&] {
                 at::add(a, row.expand({8, 16}));
               }),
               (8 * 16 + 16) * kFloat, 8 * 16 * kFloat);
}

TEST_F(WorkCounterTest, ViewsAndAllocationsDoNothing) {
  const auto a = at::randn({8, 16});
  const auto counted = count([&] {
    at::empty_like(a.view({16, 8}).t().slice(0, 0, 2).unsqueeze(0));
    a.detach().reshape({128});
  });
  for (const auto& one : counted.operators) EXPECT_FALSE(one.counts);
}

TEST_F(WorkCounterTest, OfATableOnlyTheRowsThatAreLookedUp) {
  const auto table = at::randn({1000, 16}), rows = at::tensor({3, 5}, at::kLong);
  const auto looked_up = only([&] { at::embedding(table, rows); });
  expect_bytes(looked_up, 2 * 16 * kFloat + 2 * kIndex, 2 * 16 * kFloat);
  EXPECT_EQ(looked_up.sure_read_bytes, 0) << "which rows is not known";
}

// As a recomputation ends that has all that backward needs.
TEST_F(WorkCounterTest, WhatIsGivenUpIsNotCounted) {
  const auto a = at::randn({8, 16}).requires_grad_(), b = at::randn({16, 32}),
             wrong = at::randn({15, 32});
  const auto counted = count([&] {
    EXPECT_ANY_THROW(at::mm(a, wrong));
    at::mm(a, b);
  });
  EXPECT_EQ(flops(counted), 2 * 8 * 16 * 32);
}

TEST_F(WorkCounterTest, WhatHasNoFormulaIsNamed) {
  const auto matrix = at::randn({8, 16}), vector = at::randn({16});
  const auto counted = count([&] { at::mv(matrix, vector); });
  EXPECT_EQ(flops(counted), 0);
  EXPECT_EQ(counted.without_formula.at("aten::mv"), 1);
}

TEST_F(WorkCounterTest, IsPlacedInPhasesAndRecomputations) {
  const auto a = at::randn({4, 4});
  const auto counted = count([&] {
    recorder().set_phase(trace::Phase::kForward, 2);
    at::mm(a, a);
    recorder().set_phase(trace::Phase::kBackward, 2);
    at::mm(a, a);
    recorder().enter_recompute();
    at::mm(a, a);
    recorder().exit_recompute();
  });
  std::vector<trace::ScopePoint> points;
  for (const auto& one : counted.operators)
    if (one.counts) points.push_back(one.place);
  const auto places = trace::phases_at(recorder().take().scopes, points);
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].phase, trace::Phase::kForward);
  EXPECT_EQ(places[1].phase, trace::Phase::kBackward);
  EXPECT_FALSE(places[1].in_recompute);
  EXPECT_EQ(places[2].phase, trace::Phase::kBackward);
  EXPECT_EQ(places[2].step, 2);
  EXPECT_TRUE(places[2].in_recompute);
}

}  // namespace
}  // namespace peakbench::recording
