// A recipe's saved-tensor hooks: in which order they pack and unpack, and what each is told.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/nn/module.h>

#include "worker/code_place.h"
#include "worker/engine.h"

namespace peakbench::worker {
namespace {

using testing::ElementsAre;
using Log = std::vector<std::string>;

// Keeps what it is given, or the halves of it: as two tensors, first and second.
class Noting : public SavedTensorHooks {
 public:
  Noting(std::string name, Log& log, bool splits, std::int64_t smallest = 0)
      : name_(std::move(name)), log_(log), splits_(splits), smallest_(smallest) {}

  std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor,
                                    const SavedTensorFacts& facts) override {
    const auto size = std::to_string(tensor.numel());
    if (facts.is_weight || tensor.numel() < smallest_) {
      log_.push_back(name_ + (facts.is_weight ? " leaves a weight" : " leaves " + size));
      return nullptr;
    }
    log_.push_back(name_ + " packs " + size);
    auto saved = std::make_shared<Kept>();
    saved->hooks = this;
    saved->held = splits_ ? tensor.clone().chunk(2) : std::vector<at::Tensor>{tensor.clone()};
    if (splits_)
      for (at::Tensor& half : saved->held) half = half.clone();
    return saved;
  }

  bool shows_less = false;

 private:
  struct Kept : SavedTensor {
    at::Tensor unpack() override {
      hooks->log_.push_back(hooks->name_ + " unpacks");
      return at::cat(held);
    }
    void visit_held(const HeldVisitor& visit) override {
      for (at::Tensor& one : held) {
        visit(one);
        if (hooks->shows_less) return;
      }
    }
    Noting* hooks = nullptr;
    std::vector<at::Tensor> held;
  };
  std::string name_;
  Log& log_;
  bool splits_;
  std::int64_t smallest_;
};

class Chain : public testing::Test {
 protected:
  Log log;
  std::shared_ptr<Noting> compress = std::make_shared<Noting>("compress", log, true, 4);
  std::shared_ptr<Noting> offload = std::make_shared<Noting>("offload", log, false, 3);
  // Whatever the order of typing.
  SavedTensorChain chain{
      {{SavedTensorPlace::kOffload, offload}, {SavedTensorPlace::kCompress, compress}}};
};

TEST_F(Chain, PacksPlaceAfterPlaceAndUnpacksTheOtherWay) {
  const at::Tensor tensor = at::arange(8);
  const auto saved = chain.pack(tensor, {});
  EXPECT_THAT(log, ElementsAre("compress packs 8", "offload packs 4", "offload packs 4"));
  for (int time = 0; time < 2; ++time) {  // as with retain_graph
    log.clear();
    EXPECT_TRUE(at::equal(saved->unpack(), tensor));
    EXPECT_THAT(log, ElementsAre("offload unpacks", "offload unpacks", "compress unpacks"));
  }
}

TEST_F(Chain, WhatOnePlaceLeavesIsTheNextOnesAsItIs) {
  const at::Tensor small = at::arange(3);
  EXPECT_TRUE(at::equal(chain.pack(small, {})->unpack(), small));
  EXPECT_THAT(log, ElementsAre("compress leaves 3", "offload packs 3", "offload unpacks"));
  log.clear();
  const at::Tensor halves = at::arange(5);  // 3 and 2: of what compress makes, one goes
  EXPECT_TRUE(at::equal(chain.pack(halves, {})->unpack(), halves));
  EXPECT_THAT(log, ElementsAre("compress packs 5", "offload packs 3", "offload leaves 2",
                               "offload unpacks", "compress unpacks"));
  EXPECT_EQ(chain.pack(at::arange(2), {}), nullptr);
}

TEST_F(Chain, WhatIsMadeOfAWeightIsNone) {
  torch::nn::Module module;
  const at::Tensor weight = module.register_parameter("weight", at::ones({4}));
  set_weights(module);
  EXPECT_TRUE(is_weight(weight.t()));
  EXPECT_EQ(chain.pack(weight, {true, {}, {}}), nullptr);
  EXPECT_THAT(log, ElementsAre("compress leaves a weight", "offload leaves a weight"));
  // One that keeps weights: its copy is an activation as any other.
  struct Everything : SavedTensorHooks {
    std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, const SavedTensorFacts&) override {
      struct Copy : SavedTensor {
        at::Tensor unpack() override { return copy; }
        void visit_held(const HeldVisitor& visit) override { visit(copy); }
        at::Tensor copy;
      };
      auto saved = std::make_shared<Copy>();
      saved->copy = tensor.clone();
      return saved;
    }
  };
  log.clear();
  SavedTensorChain other{{{SavedTensorPlace::kCompress, std::make_shared<Everything>()},
                          {SavedTensorPlace::kOffload, offload}}};
  EXPECT_TRUE(at::equal(other.pack(weight, {true, {}, {}})->unpack(), weight));
  EXPECT_THAT(log, ElementsAre("offload packs 4", "offload unpacks"));
}

// Memory of what was compressed is free as soon as it was taken away, and again once it was used.
TEST_F(Chain, NothingThatWasTakenStays) {
  c10::weak_intrusive_ptr<c10::TensorImpl> given(at::Tensor().getIntrusivePtr());
  struct Watching : SavedTensorHooks {
    explicit Watching(c10::weak_intrusive_ptr<c10::TensorImpl>& given) : given_(given) {}
    std::shared_ptr<SavedTensor> pack(const at::Tensor& tensor, const SavedTensorFacts&) override {
      given_ = c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr());
      struct Copy : SavedTensor {
        at::Tensor unpack() override { return copy.clone(); }
        at::Tensor copy;
      };
      auto saved = std::make_shared<Copy>();
      saved->copy = tensor.clone();
      return saved;
    }
    c10::weak_intrusive_ptr<c10::TensorImpl>& given_;
  };
  SavedTensorChain watched{{{SavedTensorPlace::kCompress, compress},
                            {SavedTensorPlace::kOffload, std::make_shared<Watching>(given)}}};
  const auto saved = watched.pack(at::arange(8), {});
  EXPECT_TRUE(given.expired());
  EXPECT_TRUE(at::equal(saved->unpack(), at::arange(8)));
}

TEST_F(Chain, OneThatShowsOtherTensorsLaterIsNamed) {
  const auto saved = chain.pack(at::arange(8), {});
  compress->shows_less = true;
  EXPECT_THAT([&] { saved->unpack(); },
              testing::ThrowsMessage<std::logic_error>(
                  "visit_held showed 2 tensors when one was packed and shows 1 now; it shows the "
                  "same in each call"));
}

TEST(CodePlace, IsTheInnermostModuleAndOperatorOfThisThread) {
  torch::nn::Module root;
  const auto inner = root.register_module("inner", std::make_shared<torch::nn::Module>());
  EXPECT_EQ(current_module(), "");
  {
    const ModulePaths paths(root);
    const ModuleScope outer_scope(root);
    EXPECT_EQ(current_module(), "");
    const ModuleScope inner_scope(*inner);
    EXPECT_EQ(current_module(), "inner");
    const FollowOperators follow;
    EXPECT_EQ(current_operator(), "");
    at::ones({2}).add(1);
    EXPECT_EQ(current_operator(), "") << "what has ended is no place";
  }
  EXPECT_EQ(module_observer(), nullptr);
}

}  // namespace
}  // namespace peakbench::worker
