// Causes, folded from traces with known answers.
#include "reports/analysis/causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reports/run/explain.h"
#include "support/fake_trace.h"
#include "trace/lifetimes.h"

namespace peakbench::analysis {
namespace {

using ::testing::ElementsAre;
using trace::FakeTrace;
using trace::Role;

// One step of three layers under SGD with momentum, whose buffers have `size` bytes each, beside
// gradients and a temporary of no module.
trace::Trace momentum(const std::string& dtype, std::int64_t size) {
  FakeTrace fake("cuda:0");
  for (const char* layer : {"0", "1", "2"})
    fake.named(Role::kParameter, std::string("layers.") + layer + ".weight", "[256]", "bf16")
        .alloc(512, 512);
  fake.forward(0).at("layers.0", "aten::mm");
  fake.free(fake.alloc(512, 512));
  fake.backward(0).at("layers.1", "aten::mm");
  fake.named(Role::kGradient, "layers.1.weight", "[256]", "bf16").alloc(512, 512);
  fake.optimizer_step(0).at("", "aten::zeros_like");
  for (const char* layer : {"0", "1", "2"})
    fake.named(Role::kOptimizerState, std::string("layers.") + layer + ".weight.momentum_buffer",
               "[256]", dtype)
        .alloc(size, size);
  fake.at("", "aten::sqrt");
  fake.free(fake.alloc(size, size));
  return fake.trace();
}

trace::Alive alive_in_step(const trace::Trace& trace) {
  return alive_at_maxima(trace).at("optimizer_step");
}

std::vector<std::string> texts(const std::vector<CategoryCauses>& categories) {
  std::vector<std::string> found;
  for (const auto& category : categories)
    for (const auto& cause : category.causes)
      found.push_back(category.category + " " + std::to_string(cause.block_difference()) + ": " +
                      reports::cause_text(cause));
  return found;
}

TEST(Causes, LayersGoByTheirPattern) {
  EXPECT_EQ(layer_pattern("model.layers.31.mlp.up_proj"), "model.layers.*");
  EXPECT_EQ(layer_pattern("encoder.layers.encoder_layer_11.mlp.0"),
            "encoder.layers.encoder_layer_*");
  EXPECT_EQ(layer_pattern("layer1.0.conv1"), "layer*");
  EXPECT_EQ(layer_pattern("heads.head"), "heads.head");
  EXPECT_EQ(layer_pattern("h2o.net"), "h2o.net") << "a number within a name counts nothing";
  EXPECT_EQ(layer_pattern("0"), "*");
  EXPECT_EQ(layer_pattern(""), "");
  EXPECT_EQ(layer_pattern("(root)"), "(root)");
  EXPECT_EQ(layer_pattern("a..b"), "a..b");
}

TEST(Causes, PartsOfBothSidesArePaired) {
  const auto base = alive_in_step(momentum("bf16", 512)),
             now = alive_in_step(momentum("fp32", 1024));
  const auto found = causes_of(differences_of(base, now));
  EXPECT_THAT(texts(found),
              ElementsAre("optimizer_state 1536: *.momentum_buffer, bf16 -> fp32, 3 tensors",
                          "temporary 512: by aten::sqrt, 1 tensor, larger"));
  std::int64_t blocks = 0, requested = 0;
  for (const auto& category : found) {
    blocks += category.block_difference;
    requested += category.requested_difference;
  }
  EXPECT_EQ(blocks, now.allocated_bytes - base.allocated_bytes);
  EXPECT_EQ(requested, now.requested_bytes - base.requested_bytes);
}

// Held against each other as they are kept: the same sums, and numbers of all that are alike.
TEST(Causes, TwoFoldsAreHeldAgainstEachOther) {
  const auto base = alive_in_step(momentum("bf16", 512)),
             now = alive_in_step(momentum("fp32", 1024));
  EXPECT_THAT(texts(Fold(now).against(Fold(base))),
              ElementsAre("optimizer_state 1536: *.momentum_buffer, bf16 -> fp32, 3 tensors",
                          "temporary 512: by aten::sqrt, 1 tensor, larger"));
  EXPECT_TRUE(Fold(now).against(Fold(now)).empty());
  EXPECT_EQ(Fold(now).against({}), causes_of(now));
}

TEST(Causes, WhatIsTheSameIsNoCause) {
  const auto alive = alive_in_step(momentum("bf16", 512));
  EXPECT_TRUE(differences_of(alive, alive).empty());
  EXPECT_TRUE(causes_of(differences_of(alive, alive)).empty());
}

TEST(Causes, SomeMoreAndSomeFewerAreCounted) {
  const auto before = alive_at_maxima(momentum("bf16", 512)).at("backward"),
             after = alive_in_step(momentum("bf16", 512));
  EXPECT_THAT(texts(causes_of(differences_of(before, after))),
              ElementsAre("optimizer_state 1536: *.momentum_buffer, 3 tensors more",
                          "temporary 512: by aten::sqrt, 1 tensor more"));
  EXPECT_THAT(texts(causes_of(differences_of(after, before))),
              ElementsAre("optimizer_state -1536: *.momentum_buffer, 3 tensors fewer",
                          "temporary -512: by aten::sqrt, 1 tensor fewer"));
}

// The same numbers of bytes asked for in larger blocks: what the allocator does, not the code.
TEST(Causes, LargerBlocksAreSaid) {
  const auto with_block = [](std::int64_t block) {
    FakeTrace fake("cuda:0");
    for (const char* layer : {"layers.0", "layers.1"})
      fake.named(Role::kParameter, std::string(layer) + ".weight").alloc(1000, block);
    return alive_at_maxima(fake.trace()).at("build");
  };
  EXPECT_THAT(
      texts(causes_of(differences_of(with_block(1024), with_block(2048)))),
      ElementsAre("parameter 2048: layers.*, 2 tensors in larger blocks for the same bytes"));
}

// Where a library first needed its workspace says nothing of why it is there.
TEST(Causes, AWorkspaceThatIsNeededElsewhereIsTheSame) {
  const auto first_in = [](const std::string& module) {
    FakeTrace fake("cuda:0");
    fake.at(module, "aten::mm").named(Role::kWorkspace, "cuBLAS workspace").alloc(4096, 4096);
    return alive_at_maxima(fake.trace()).at("build");
  };
  const auto differences = differences_of(first_in("layers.0"), first_in("head"));
  EXPECT_EQ(differences.size(), 2U) << "as single allocations they are two";
  EXPECT_TRUE(causes_of(differences).empty());
}

// So are sums of one, which have no names.
TEST(Causes, SumsOfWorkspacesAreOneCause) {
  const std::vector<Part> base{{"forward", "forward", "workspace", "layers.0", "mm", 4096, 4096}},
      now{{"forward", "forward", "workspace", "head", "conv", 4096, 4096}},
      more{{"forward", "forward", "workspace", "head", "conv", 8192, 8192}};
  EXPECT_TRUE(causes_of(base, now, "forward", "forward").empty());
  EXPECT_THAT(texts(causes_of(base, more, "forward", "forward")),
              ElementsAre("workspace 4096: several modules"));
}

// A history keeps sums by module and operator alone.
TEST(Causes, SumsAloneAreFoldedToo) {
  const std::vector<Part> base{{"forward", "forward", "activation", "layers.0", "mm", 10, 512}},
      now{{"forward", "forward", "activation", "layers.0", "mm", 20, 1024},
          {"forward", "forward", "activation", "layers.1", "mm", 10, 512},
          {"forward", "forward", "activation", "head", "mm", 4, 512},
          {"backward", "backward", "gradient", "head", "mm", 4, 512}};
  EXPECT_THAT(texts(causes_of(base, now, "forward", "forward")),
              ElementsAre("activation 1024: layers.*, by mm", "activation 512: head, by mm"));
}

TEST(Causes, OneMomentIsFoldedToWhatIsAlive) {
  const auto alive = alive_in_step(momentum("fp32", 1024));
  std::int64_t sum = 0;
  std::vector<std::string> held;
  for (const auto& category : causes_of(alive)) {
    sum += category.block_difference;
    for (const auto& cause : category.causes) held.push_back(reports::held_text(cause));
  }
  EXPECT_EQ(sum, alive.allocated_bytes);
  EXPECT_THAT(held, ElementsAre("*.momentum_buffer, fp32, 3 tensors", "layers.*, bf16, 3 tensors",
                                "by aten::sqrt, 1 tensor", "layers.1.weight, bf16, 1 tensor"));
}

}  // namespace
}  // namespace peakbench::analysis
