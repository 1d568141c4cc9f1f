// What is named against the largest part of a peak: strategies, and the line of a user's script.
#include "reports/analysis/strategies_against.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "support/fake_trace.h"
#include "trace/maxima.h"

namespace peakbench::analysis {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::FakeTrace;

// The manifests say in words what each strategy makes of a part.
TEST(StrategiesAgainst, AreThereAndMadeForThePart) {
  std::map<std::string, nlohmann::json> costs;
  for (const auto& plugin : std::filesystem::directory_iterator(PEAKBENCH_SOURCE_DIR "/plugins")) {
    std::ifstream file(plugin.path() / "plugin.json");
    if (!file) continue;
    const auto manifest = nlohmann::json::parse(file);
    for (const auto& entry : manifest.at("entries"))
      costs[entry.at("id")] = entry.value("cost", nlohmann::json::object());
  }
  std::set<std::string> parts;
  for (std::size_t i = 0; i < trace::kCategoryCount; ++i) {
    const auto found =
        strategies_against(static_cast<trace::Category>(i), trace::Phase::kOptimizerStep);
    for (const auto& id : found.strategies) {
      ASSERT_TRUE(costs.contains(id)) << id;
      EXPECT_TRUE(costs[id].contains(found.cost)) << id << " does nothing to " << found.cost;
    }
    if (!found.strategies.empty()) parts.insert(found.cost);
  }
  EXPECT_THAT(parts, ElementsAre("activations", "gradients", "optimizer_state", "parameters"));
  EXPECT_TRUE(
      strategies_against(trace::Category::kTemporary, trace::Phase::kForward).strategies.empty());
}

// A training of three steps whose peak is filled as the test says.
struct Training {
  int layers = 6, kinds = 3;  // activations of a layer
  std::int64_t activation = 10, state = 0, gradient = 10, copy = 0, spike = 0;
  std::string state_dtype = "float32", optimizer = "adam.py";
  int backwards = 1;                    // a step
  bool keeps_gradients = false;         // through the next forward
  std::vector<std::string> files = {};  // that run, besides

  FakeTrace fake{"cuda:0"};

  std::string remedy() {
    fake.build().named(trace::Role::kParameter, "weight").alloc(10);
    for (const auto& file : files) fake.frame("/env/site-packages/" + file, "f", 1);
    std::vector<FakeTrace::Allocation> kept;
    for (int step = 0; step < 3; ++step) kept = one_step(step, kept);
    const auto trace = fake.trace();
    const auto lifetimes = trace::lifetimes(trace);
    return remedy_for_program(trace, lifetimes, trace::find_peak(trace, lifetimes).event);
  }

 private:
  using Allocations = std::vector<FakeTrace::Allocation>;

  trace::StackFrame model(int line) { return fake.frame("/me/model.py", "forward", line); }

  Allocations forward(int step) {
    Allocations made;
    fake.forward(step);
    for (int i = 0; i < layers * kinds; ++i)
      made.push_back(fake.from({model(1 + i % kinds)}).alloc(activation));
    if (spike > 0) fake.free(fake.alloc(spike));
    return made;
  }

  Allocations one_step(int step, const Allocations& kept) {
    Allocations gradients = kept;
    for (int i = 0; i < backwards; ++i) {
      const auto made = forward(step);
      fake.backward(step).from({});
      if (gradients.empty())
        gradients.push_back(fake.named(trace::Role::kGradient, "weight.grad").alloc(gradient));
      for (const auto one : made) fake.free(one);
    }
    fake.optimizer_step(step).from(
        {fake.frame("/env/site-packages/torch/optim/optimizer.py", "step", 1),
         fake.frame("/env/site-packages/torch/optim/" + optimizer, "step", 2)});
    if (step == 0 && state > 0)
      fake.named(trace::Role::kOptimizerState, "weight.exp_avg_sq", "", state_dtype).alloc(state);
    if (copy > 0) fake.free(fake.at("", "aten::_foreach_sqrt").alloc(copy));
    fake.at("");
    if (keeps_gradients) return gradients;
    for (const auto one : gradients) fake.free(one);
    return {};
  }
};

TEST(Remedy, OfLayersIsCheckpointing) {
  EXPECT_EQ(Training{}.remedy(),
            "90% is activations, which torch.utils.checkpoint.checkpoint(block, x, "
            "use_reentrant=False) in place of block(x) makes smaller (peakbench describe "
            "checkpointing)");
}

TEST(Remedy, OfActivationsThatCheckpointingWouldNotFreeIsNone) {
  Training one_layer;
  one_layer.layers = 1;
  EXPECT_EQ(one_layer.remedy(), "");
  Training inputs_alone;
  inputs_alone.kinds = 1;
  EXPECT_EQ(inputs_alone.remedy(), "");
  Training checkpointed;
  checkpointed.files = {"torch/utils/checkpoint.py"};
  EXPECT_EQ(checkpointed.remedy(), "");
}

Training of_state(std::int64_t state) {
  Training training;
  training.state = state;
  training.activation = 1;
  return training;
}

TEST(Remedy, OfAveragesInFullPrecisionIsEightBits) {
  EXPECT_THAT(of_state(100).remedy(), HasSubstr("% is optimizer state, which "
                                                "torchao.optim.AdamW8bit(parameters) makes"));
  Training small = of_state(100);
  small.state_dtype = "uint8";
  EXPECT_EQ(small.remedy(), "");
}

TEST(Remedy, OfTheCopiesOfForeachIsAnArgumentOfTheOptimizer) {
  Training training;
  training.layers = 1;
  training.copy = 100;
  EXPECT_THAT(Training(training).remedy(),
              HasSubstr("% is temporary memory, which fused=True among the optimizer's arguments"));
  training.optimizer = "rmsprop.py";
  EXPECT_THAT(training.remedy(), HasSubstr(", which foreach=False among the optimizer's"));
}

Training of_gradients() {
  Training training;
  training.gradient = 100;
  training.layers = 1;
  return training;
}

TEST(Remedy, OfGradientsIsAnUpdateInBackward) {
  EXPECT_THAT(of_gradients().remedy(), HasSubstr("register_post_accumulate_grad_hook"));
  Training accumulates = of_gradients();
  accumulates.backwards = 2;
  EXPECT_EQ(accumulates.remedy(), "");
  Training clips = of_gradients();
  clips.files = {"torch/nn/utils/clip_grad.py"};
  EXPECT_EQ(clips.remedy(), "");
}

TEST(Remedy, OfGradientsThatAnUpdateHasUsedIsToFreeThem) {
  Training training = of_gradients();
  training.keeps_gradients = true;
  training.spike = 20;
  EXPECT_THAT(
      training.remedy(),
      HasSubstr("is gradients, which optimizer.zero_grad(set_to_none=True) before forward"));
}

TEST(Remedy, OfAnInferenceIsNone) {
  FakeTrace fake("cuda:0");
  fake.build().named(trace::Role::kParameter, "weight").alloc(10);
  for (int i = 0; i < 12; ++i)
    fake.evaluation(0).from({fake.frame("/me/model.py", "forward", i % 3)}).alloc(10);
  const auto lifetimes = trace::lifetimes(fake.trace());
  EXPECT_EQ(remedy_for_program(fake.trace(), lifetimes, 12), "");
}

}  // namespace
}  // namespace peakbench::analysis
