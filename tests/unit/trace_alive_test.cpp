// What is alive at a moment of fake traces with known answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "support/fake_trace.h"
#include "trace/alive.h"

namespace peakbench::trace {
namespace {

using testing::ElementsAre;

constexpr std::uint64_t kAllAlive = 6;  // the last allocation of layers()

FakeTrace layers() {
  FakeTrace fake("cuda:0");
  fake.at("", "aten::empty");
  fake.named(Role::kParameter, "encoder.layers.0.weight", "[10, 20]", "fp32").alloc(800, 1024);
  fake.named(Role::kParameter, "encoder.layers.1.weight").alloc(1500, 1536);
  fake.named(Role::kParameter, "scale").alloc(4, 512);
  fake.forward(0).at("encoder.layers.0", "aten::addmm");
  const auto large = fake.alloc(5000, 5120);
  const auto small = fake.at("encoder.layers.0", "aten::gelu").alloc(600, 1024);
  const auto output = fake.at("", "").alloc(100, 512);
  fake.in("cpu").alloc(77);
  fake.backward(0).free(large).free(small).free(output);
  return fake;
}

const AliveNode& node(const AliveNode& parent, const std::string& label) {
  for (const auto& child : parent.children)
    if (child.label == label) return child;
  throw std::runtime_error("no child " + label);
}

TEST(Alive, ATreeOfModulesOperatorsAndAllocations) {
  const auto fake = layers();
  const auto found = lifetimes(fake.trace());
  const auto alive = alive_at(fake.trace(), found, kAllAlive);
  EXPECT_EQ(alive.allocated_bytes, 1024 + 1536 + 512 + 5120 + 1024 + 512);
  EXPECT_EQ(alive.requested_bytes, 800 + 1500 + 4 + 5000 + 600 + 100);
  EXPECT_EQ(alive.phase, Phase::kForward);
  EXPECT_EQ(alive.root.bytes, alive.allocated_bytes);
  EXPECT_EQ(alive.root.allocations, 6);
  EXPECT_DOUBLE_EQ(alive.root.share, 1.0);
  std::vector<std::string> top;
  for (const auto& child : alive.root.children) top.push_back(child.label);
  EXPECT_THAT(top, ElementsAre("encoder", "(root)", "(no module)"));
  const auto& all = node(node(alive.root, "encoder"), "layers");
  EXPECT_EQ(all.bytes, 1024 + 1536 + 5120 + 1024);
  const auto& layer = node(all, "0");
  EXPECT_EQ(&layer, &all.children[0]) << "the largest first";
  EXPECT_EQ(layer.kind, AliveNode::Kind::kModule);
  ASSERT_EQ(layer.children.size(), 3U);
  const auto& addmm = layer.children[0];
  EXPECT_EQ(addmm.label, "aten::addmm");
  EXPECT_EQ(addmm.kind, AliveNode::Kind::kOperator);
  EXPECT_EQ(addmm.bytes, 5120);
  const auto& leaf = addmm.children.at(0);
  EXPECT_EQ(leaf.kind, AliveNode::Kind::kAllocation);
  EXPECT_EQ(leaf.label, "activation");
  EXPECT_EQ(alive.allocations[leaf.allocation].event, 3U);
  EXPECT_DOUBLE_EQ(leaf.share, 5120.0 / static_cast<double>(alive.allocated_bytes));
  EXPECT_EQ(node(node(layer, "aten::empty"), "encoder.layers.0.weight").bytes, 1024);
  EXPECT_EQ(node(node(alive.root, "(no module)"), "(no operator)").bytes, 512);
}

// Each level of the tree needs stack where it is walked, here and in a browser.
TEST(Alive, AModuleOfAHundredThousandLevelsHasATreeOfSome) {
  std::string path = "m";
  for (int i = 1; i < 100'000; ++i) path += ".m";
  FakeTrace fake("cuda:0");
  fake.forward(0).at(path, "aten::addmm").alloc(100, 512);
  fake.at(path, "aten::gelu").alloc(100, 512);
  const auto alive = alive_at(fake.trace(), lifetimes(fake.trace()), 1);
  int levels = 0;
  const AliveNode* node = &alive.root;
  for (; !node->children.empty() && node->children[0].kind == AliveNode::Kind::kModule; ++levels)
    node = &node->children[0];
  EXPECT_EQ(levels, 64);
  EXPECT_EQ(node->label, path.substr(2 * 63)) << "the rest in one";
  EXPECT_EQ(node->bytes, 1024);
  EXPECT_EQ(node->children.size(), 2U);
}

TEST(Alive, TheLargestAllocationsFirstWithWhatIsKnownOfThem) {
  const auto fake = layers();
  const auto found = lifetimes(fake.trace());
  const auto alive = alive_at(fake.trace(), found, kAllAlive);
  ASSERT_EQ(alive.allocations.size(), 6U);
  EXPECT_EQ(alive.allocations[0].block_bytes, 5120);
  EXPECT_EQ(alive.allocations[0].module, "encoder.layers.0");
  EXPECT_EQ(alive.allocations[0].op, "aten::addmm");
  EXPECT_EQ(alive.allocations[0].category, Category::kActivation);
  const auto& weight = alive.allocations[2];
  EXPECT_EQ(weight.name, "encoder.layers.0.weight") << "of equal size: the older first";
  EXPECT_EQ(weight.module, "encoder.layers.0");
  EXPECT_EQ(weight.shape, "[10, 20]");
  EXPECT_EQ(weight.dtype, "fp32");
  EXPECT_EQ(weight.requested_bytes, 800);
}

TEST(Alive, WhatHasNoModuleStandsWhereItsNameSays) {
  FakeTrace fake;
  fake.named(Role::kOptimizerState, "encoder.ln.weight.exp_avg").alloc(10);
  fake.named(Role::kOptimizerState, "scale.exp_avg").alloc(9);
  fake.named(Role::kOptimizerState, "exp_avg").alloc(8);
  fake.named(Role::kGradient, "encoder.ln.weight").alloc(7);
  fake.named(Role::kInput, "batch.image").alloc(6);
  std::vector<std::string> modules;
  for (const auto& found : alive_at(fake.trace(), lifetimes(fake.trace()), 4).allocations)
    modules.push_back(found.module);
  EXPECT_THAT(modules, ElementsAre("encoder.ln", "(root)", "", "encoder.ln", ""));
}

TEST(Alive, OnlyWhatIsAliveThenInThatSpace) {
  FakeTrace fake;
  const auto gone = fake.alloc(100);
  fake.free(gone);
  const auto kept = fake.alloc(50);
  const auto found = lifetimes(fake.trace());
  EXPECT_EQ(alive_at(fake.trace(), found, gone).allocated_bytes, 100);
  EXPECT_EQ(alive_at(fake.trace(), found, gone + 1).allocated_bytes, 0);
  EXPECT_EQ(alive_at(fake.trace(), found, kept).allocated_bytes, 50);
  EXPECT_THROW(alive_at(fake.trace(), found, 3), std::out_of_range);
  const auto two = layers();
  EXPECT_EQ(alive_at(two.trace(), lifetimes(two.trace()), kAllAlive, 1).allocated_bytes, 77);
  auto second = two.trace();
  second.own_space = 1;
  EXPECT_EQ(alive_at(second, lifetimes(second), kAllAlive).allocated_bytes, 77);
}

}  // namespace
}  // namespace peakbench::trace
