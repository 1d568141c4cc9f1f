// What the recorder makes of LibTorch's operators, modules and autograd. Sizes are small and every
// byte has a closed form.
#include "recording/recorder.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <stdexcept>
#include <thread>

#include "peakbench/nn.h"
#include "recording/operator_labels.h"
#include "worker/setup.h"

namespace peakbench::recording {
namespace {

namespace autograd = torch::autograd;

// y = x W^T in `block.linear`.
struct Net : torch::nn::Module {
  struct Block : torch::nn::Module {
    std::shared_ptr<nn::Linear> linear =
        register_module("linear", std::make_shared<nn::Linear>(4, 4, false, at::kFloat));
  };
  std::shared_ptr<Block> block = register_module("block", std::make_shared<Block>());

  at::Tensor forward(const at::Tensor& x) const {
    ModuleScope scope(*this);
    ModuleScope inner(*block);
    return block->linear->forward(x);
  }
};

class RecorderTest : public testing::Test {
 protected:
  RecorderTest()
      : recorder_(*new Recorder("cpu", "cpu", /*emulated=*/false)) {  // never taken out again
    set_observer(&observer_);
    install_operator_labels(recorder_);
    net_ = std::make_shared<Net>();
    observer_.name_modules(*net_);
  }

  Recorder& recorder_;
  worker::RecordObserver observer_{recorder_};
  std::shared_ptr<Net> net_;
};

using FailurePlaceTest = RecorderTest;

at::Tensor wrong_width() { return at::ones({2, 5}); }  // the layer takes 4

TEST_F(FailurePlaceTest, IsTheInnermostModuleAndOperator) {
  EXPECT_FALSE(recorder_.failure_place());
  recorder_.set_phase(trace::Phase::kForward, 2);
  EXPECT_THROW(net_->forward(wrong_width()), c10::Error);
  const auto found = recorder_.failure_place();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->module, "block.linear");
  EXPECT_EQ(found->op, "aten::mm");
  EXPECT_EQ(found->phase, trace::Phase::kForward);
  EXPECT_EQ(found->step, 2);
}

TEST_F(FailurePlaceTest, NeedsNoOperator) {
  const auto fail = [&] {
    ModuleScope scope(*net_);
    ModuleScope inner(*net_->block);
    throw std::runtime_error("out of luck");
  };
  EXPECT_THROW(fail(), std::runtime_error);
  ASSERT_TRUE(recorder_.failure_place());
  EXPECT_EQ(recorder_.failure_place()->module, "block");
  EXPECT_EQ(recorder_.failure_place()->op, "");
}

TEST_F(FailurePlaceTest, IsForgottenWhereWorkGoesOn) {
  EXPECT_THROW(net_->forward(wrong_width()), c10::Error);
  net_->forward(at::ones({2, 4}));
  EXPECT_FALSE(recorder_.failure_place());
}

// The exception of an autograd thread is thrown again on the thread that asked for backward.
TEST_F(FailurePlaceTest, OnAnotherThreadIsKeptWhileTheFirstUnwinds) {
  const auto on_another_thread = [&] {
    std::exception_ptr thrown;
    std::thread([&] {
      try {
        net_->forward(wrong_width());
      } catch (...) {
        thrown = std::current_exception();
      }
    }).join();
    std::rethrow_exception(thrown);
  };
  const auto fail = [&] {
    ModuleScope scope(*net_);
    on_another_thread();
  };
  EXPECT_THROW(fail(), c10::Error);
  ASSERT_TRUE(recorder_.failure_place());
  EXPECT_EQ(recorder_.failure_place()->module, "block.linear");
}

struct ThrowsInBackward : autograd::Function<ThrowsInBackward> {
  static at::Tensor forward(autograd::AutogradContext*, const at::Tensor& x) { return x.clone(); }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list) {
    throw std::runtime_error("no gradient today");
  }
};

TEST_F(FailurePlaceTest, InBackwardIsTheModuleOfTheNode) {
  at::Tensor loss;
  {
    ModuleScope scope(*net_->block);
    const auto x = at::ones({3}).requires_grad_();
    loss = ThrowsInBackward::apply(x).sum();
  }
  const auto backward = [&] {
    ModuleScope scope(*net_);
    autograd::backward({loss}, {});
  };
  EXPECT_THROW(backward(), std::runtime_error);
  ASSERT_TRUE(recorder_.failure_place());
  EXPECT_EQ(recorder_.failure_place()->module, "block");
}

}  // namespace
}  // namespace peakbench::recording
