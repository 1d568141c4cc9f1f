// Checkpointing's semantics on blocks small enough to see through. What it saves in memory is held
// against stock PyTorch by the parity tests.
#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "peakbench/errors.h"
#include "plugins/checkpointing/frame.h"
#include "worker/engine.h"

namespace peakbench::checkpointing {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

const bool kEngineInstalled = [] {
  worker::install_engine();  // before any autograd use
  return true;
}();

at::Tensor leaf(at::IntArrayRef shape) { return at::randn(shape).set_requires_grad(true); }

void backward(const at::Tensor& output, bool keep_graph = false) {
  torch::autograd::backward({output.sum()}, {}, keep_graph);
}

BlockFunction of_one(const TensorFunction& function) {
  return [function](const std::vector<at::Tensor>& in) { return std::vector{function(in)}; };
}
at::Tensor run_one(const TensorFunction& block, const std::vector<at::Tensor>& inputs,
                   Selection keeps = {}) {
  return run_checkpointed(of_one(block), inputs, keeps).at(0);
}
at::Tensor run_in(const std::shared_ptr<Frame>& frame, const TensorFunction& block,
                  const std::vector<at::Tensor>& inputs) {
  return frame->run(of_one(block), inputs).at(0);
}

// Random numbers and several operators that save tensors. x: (4, 8)
struct Block {
  at::Tensor weight = leaf({8, 8});
  int runs = 0, finished_runs = 0;

  at::Tensor operator()(const std::vector<at::Tensor>& in) {
    ++runs;
    at::Tensor x = at::matmul(in[0], weight);
    x = at::dropout(at::gelu(x), 0.5, /*train=*/true);
    x = at::matmul(x, weight).tanh();
    ++finished_runs;
    return x + 1;
  }
  TensorFunction function() {
    return [this](const std::vector<at::Tensor>& in) { return (*this)(in); };
  }
};

// Gradients of input and weight after one backward.
std::vector<at::Tensor> gradients(Block& block, at::Tensor input, bool checkpointed) {
  input = input.detach().clone().set_requires_grad(true);
  block.weight.mutable_grad().reset();
  at::manual_seed(7);
  backward(checkpointed ? run_one(block.function(), {input}) : block({input}));
  return {input.grad(), block.weight.grad().clone()};
}

TEST(Checkpointing, GradientsAreBitIdenticalWithDropoutReplayed) {
  Block block;
  const at::Tensor input = at::randn({4, 8});
  const auto plain = gradients(block, input, false), checkpointed = gradients(block, input, true);
  EXPECT_TRUE(at::equal(plain[0], checkpointed[0]));
  EXPECT_TRUE(at::equal(plain[1], checkpointed[1]));
}

TEST(Checkpointing, TheGeneratorsGoOnAsIfNothingHadRunAgain) {
  Block block;
  const at::Tensor input = at::randn({4, 8});
  gradients(block, input, false);
  const at::Tensor after_plain = at::rand({3});
  gradients(block, input, true);
  EXPECT_TRUE(at::equal(at::rand({3}), after_plain));
}

TEST(Checkpointing, RunsAgainOnceAndStopsAtTheLastSavedTensor) {
  Block block;
  const at::Tensor output = run_one(block.function(), {leaf({4, 8})});
  EXPECT_EQ(block.runs, 1);
  backward(output);
  EXPECT_EQ(block.runs, 2);
  EXPECT_EQ(block.finished_runs, 1);  // tanh saves last; the second run never came past it
}

TEST(Checkpointing, ASecondBackwardRunsAgainOnceMore) {
  Block block;
  const at::Tensor output = run_one(block.function(), {leaf({4, 8})});
  backward(output, /*keep_graph=*/true);
  const at::Tensor once = block.weight.grad().clone();
  backward(output);
  EXPECT_EQ(block.runs, 3);
  EXPECT_TRUE(at::allclose(block.weight.grad(), 2 * once));
}

TEST(Checkpointing, WithoutGradModeItOnlyRuns) {
  Block block;
  at::NoGradGuard no_grad;
  EXPECT_FALSE(run_one(block.function(), {leaf({4, 8})}).requires_grad());
  EXPECT_EQ(block.runs, 1);
}

// Counts what it is asked to keep, and how often it gives something back.
class CountingHooks : public SavedTensorHooks {
 public:
  struct Counted : SavedTensor {
    Counted(CountingHooks& owner, at::Tensor tensor) : hooks(owner), kept(std::move(tensor)) {}
    at::Tensor unpack() override {
      ++hooks.unpacked;
      return kept;
    }
    CountingHooks& hooks;
    at::Tensor kept;
  };
  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, const SavedTensorFacts&) override {
    packed.push_back(tensor.numel());
    return std::make_shared<Counted>(*this, tensor.detach());
  }
  std::vector<std::int64_t> packed;
  int unpacked = 0;
};

TEST(Checkpointing, HooksAroundTheBlockSeeItsInputsAlone) {
  Block block;
  const auto hooks = std::make_shared<CountingHooks>();
  at::Tensor output;
  {
    SavedTensorHooksScope scope(hooks);
    output = run_one(block.function(), {leaf({4, 8})});
  }
  EXPECT_THAT(hooks->packed, ElementsAre(4 * 8));
  backward(output);
  EXPECT_EQ(hooks->unpacked, 1);
}

TEST(Checkpointing, BlocksInsideBlocksAreCheckpointedToo) {
  Block block;
  const at::Tensor input = at::randn({4, 8});
  const auto plain = gradients(block, input, false);
  Block outer{block.weight};
  const TensorFunction inner = outer.function();
  const TensorFunction around = [&](const std::vector<at::Tensor>& in) {
    return run_one(inner, in);
  };
  const at::Tensor x = input.detach().clone().set_requires_grad(true);
  block.weight.mutable_grad().reset();
  at::manual_seed(7);
  backward(run_one(around, {x}));
  EXPECT_TRUE(at::equal(x.grad(), plain[0]));
  EXPECT_TRUE(at::equal(block.weight.grad(), plain[1]));
}

// Two runs of the block in a row, as one segment.
at::Tensor run_segment(Block& block, const at::Tensor& input) {
  const auto frame = std::make_shared<Frame>();
  const at::Tensor x = run_in(frame, block.function(), {input});
  return run_in(frame, block.function(), {x});
}

TEST(Checkpointing, ASegmentKeepsItsFirstInputAlone) {
  Block block;
  const at::Tensor input = at::randn({4, 8}), plain = input.clone().set_requires_grad(true),
                   checkpointed = input.clone().set_requires_grad(true);
  at::manual_seed(7);
  backward(block({block({plain})}));
  const at::Tensor expected = block.weight.grad().clone();
  block.weight.mutable_grad().reset();

  const auto hooks = std::make_shared<CountingHooks>();
  at::manual_seed(7);
  at::Tensor output;
  {
    SavedTensorHooksScope scope(hooks);
    output = run_segment(block, checkpointed);
  }
  EXPECT_THAT(hooks->packed, ElementsAre(4 * 8));
  block.runs = 0;
  backward(output);
  EXPECT_EQ(block.runs, 2);  // each once, one after the other
  EXPECT_TRUE(at::equal(checkpointed.grad(), plain.grad()));
  EXPECT_TRUE(at::equal(block.weight.grad(), expected));
}

TEST(Checkpointing, ASegmentRefusesBlocksThatDoNotFollowEachOther) {
  Block block;
  const auto frame = std::make_shared<Frame>();
  const at::Tensor x = run_in(frame, block.function(), {leaf({4, 8})});
  EXPECT_THAT([&] { run_in(frame, block.function(), {x * 2}); },
              ThrowsMessage<Unsupported>(HasSubstr("does something between them")));
}

// Two streams, as reversible networks have them: each block takes both and puts both out.
TEST(Checkpointing, BlocksOfTwoStreamsGiveBothTheirGradients) {
  const at::Tensor weight = leaf({8, 8});
  int runs = 0;
  const BlockFunction block = [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
    ++runs;
    const at::Tensor left = in[0] + at::dropout(at::matmul(in[1], weight).tanh(), 0.5, true);
    return {left, in[1] * left.exp()};
  };
  const at::Tensor a = at::randn({4, 8}), b = at::randn({4, 8});
  const auto gradients_of = [&](const auto& run) {
    const at::Tensor left = a.clone().set_requires_grad(true),
                     right = b.clone().set_requires_grad(true);
    weight.mutable_grad().reset();
    at::manual_seed(7);
    const auto out = run(run({left, right}));
    torch::autograd::backward({out.at(0).sum() + 3 * out.at(1).sum()}, {});
    return std::vector{left.grad(), right.grad(), weight.grad().clone()};
  };
  const auto plain = gradients_of(block);
  runs = 0;
  const auto each =
      gradients_of([&](const std::vector<at::Tensor>& in) { return run_checkpointed(block, in); });
  EXPECT_EQ(runs, 4);
  // As one segment: of the second block, neither input is kept.
  const auto hooks = std::make_shared<CountingHooks>();
  const auto frame = std::make_shared<Frame>();
  const auto together = gradients_of([&](const std::vector<at::Tensor>& in) {
    SavedTensorHooksScope scope(hooks);
    return frame->run(block, in);
  });
  EXPECT_THAT(hooks->packed, ElementsAre(4 * 8, 4 * 8));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    EXPECT_TRUE(at::equal(each[i], plain[i])) << i;
    EXPECT_TRUE(at::equal(together[i], plain[i])) << i;
  }
}

const Selection kMatmuls{.matmuls = true};

TEST(Checkpointing, WhatAKeptOperatorMadeIsTheSameMemoryInTheSecondRun) {
  const at::Tensor weight = leaf({8, 8}), input = leaf({4, 8});
  std::vector<const void*> products;
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    const at::Tensor product = at::mm(in[0], weight);
    products.push_back(product.const_data_ptr());
    return (product + 1).tanh().exp();
  };
  backward(block({input}));
  const at::Tensor expected = weight.grad().clone(), expected_input = input.grad().clone();
  weight.mutable_grad().reset();
  input.mutable_grad().reset();
  products.clear();

  backward(run_one(block, {input}, kMatmuls));
  ASSERT_EQ(products.size(), 2u);
  EXPECT_EQ(products[0], products[1]);
  EXPECT_TRUE(at::equal(weight.grad(), expected));
  EXPECT_TRUE(at::equal(input.grad(), expected_input));
}

TEST(Checkpointing, OnlyChosenOperatorsAreKept) {
  const at::Tensor weight = leaf({8, 8});
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> made;
  const auto remember = [&](const at::Tensor& tensor) {
    made.emplace_back(c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(
        tensor.storage().unsafeGetStorageImpl()));
    return tensor;
  };
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    return remember(remember(at::mm(in[0], weight)).tanh()).exp();
  };
  const at::Tensor output = run_one(block, {leaf({4, 8})}, kMatmuls);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_FALSE(made[0].expired());
  EXPECT_TRUE(made[1].expired());
}

TEST(Checkpointing, AKeptOutputThatWasChangedInPlaceIsNoticed) {
  const at::Tensor weight = leaf({8, 8});
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    at::Tensor product = at::mm(in[0], weight);
    product.mul_(2);
    return product.tanh();
  };
  const at::Tensor output = run_one(block, {leaf({4, 8})}, kMatmuls);
  EXPECT_THAT(
      [&] { backward(output); },
      ThrowsMessage<std::runtime_error>(HasSubstr("aten::mm returned in forward was changed")));
}

TEST(Checkpointing, AnotherOrderOfKeptOperatorsIsNoticed) {
  const at::Tensor weight = leaf({8, 8});
  int runs = 0;
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    const at::Tensor product =
        ++runs == 1 ? at::mm(in[0], weight) : at::addmm(at::zeros({8}), in[0], weight);
    return product.tanh().exp();
  };
  const at::Tensor output = run_one(block, {leaf({4, 8})}, kMatmuls);
  EXPECT_THAT([&] { backward(output); },
              ThrowsMessage<std::runtime_error>(
                  AllOf(HasSubstr("runs aten::addmm"), HasSubstr("it ran aten::mm"))));
}

TEST(Checkpointing, AutocastIsAsItWasInForward) {
  at::Tensor weight = leaf({8, 8});
  at::ScalarType second_dtype = at::kFloat;
  int runs = 0;
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    const at::Tensor y = at::matmul(in[0], weight);
    if (++runs == 2) second_dtype = y.scalar_type();
    return y.tanh();
  };
  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
  const at::Tensor output = run_one(block, {leaf({4, 8})});
  at::autocast::set_autocast_enabled(at::kCPU, false);
  at::autocast::clear_cache();
  backward(output);
  EXPECT_EQ(second_dtype, at::kBFloat16);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
}

TEST(Checkpointing, AnotherShapeInTheSecondRunIsSaidClearly) {
  int runs = 0;
  const at::Tensor weight = leaf({8});
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    return (++runs == 1 ? in[0] : in[0].slice(0, 0, 1)) * weight;
  };
  const at::Tensor output = run_one(block, {leaf({4, 8})});
  EXPECT_THAT([&] { backward(output); },
              ThrowsMessage<std::runtime_error>(AllOf(HasSubstr("Float [4, 8] on cpu in forward"),
                                                      HasSubstr("Float [1, 8] on cpu when"))));
}

TEST(Checkpointing, FewerTensorsInTheSecondRunAreSaidClearly) {
  int runs = 0;
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    return ++runs == 1 ? in[0].exp().tanh() : in[0] + 1;
  };
  const at::Tensor output = run_one(block, {leaf({4, 8})});
  EXPECT_THAT([&] { backward(output); },
              ThrowsMessage<std::runtime_error>(HasSubstr("saved 2 tensors in forward and 0")));
}

TEST(Checkpointing, ATensorIsFreedWhereItWasRead) {
  // exp keeps its result: the only reader of it is exp's backward, so it must be gone when the
  // input's gradient arrives, although the frame still lives in this graph's other node.
  c10::weak_intrusive_ptr<c10::StorageImpl> recomputed(c10::intrusive_ptr<c10::StorageImpl>{});
  int runs = 0;
  bool alive_during_second_run = false, alive_after = true;
  const TensorFunction block = [&](const std::vector<at::Tensor>& in) {
    const at::Tensor y = in[0].exp();
    if (++runs == 2) {
      recomputed = c10::weak_intrusive_ptr<c10::StorageImpl>(
          c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(y.storage().unsafeGetStorageImpl()));
    }
    return y.tanh();
  };
  const at::Tensor input = leaf({4, 8});
  const at::Tensor through = input.clone();
  through.register_hook([&](const at::Tensor&) { alive_after = !recomputed.expired(); });
  const at::Tensor output = run_one(block, {through});
  output.register_hook([&](const at::Tensor&) { alive_during_second_run = !recomputed.expired(); });
  backward(output);
  EXPECT_FALSE(alive_during_second_run);  // nothing has run again before backward asks
  EXPECT_EQ(runs, 2);
  EXPECT_FALSE(alive_after);
}

}  // namespace
}  // namespace peakbench::checkpointing
