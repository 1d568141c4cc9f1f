// Loss scaling and clipping, number by number.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <limits>

#include "offered.h"

namespace peakbench::test {
namespace {

// The strategy's recipe with nothing under it.
Recipe recipe_alone(const std::string& strategy, const Values& given) {
  const Offered vit = find(planning::Kind::kModel, "vit-b-16");
  const auto model = vit.code().make_model(
      {"vit-b-16", vit.options({{"layers", std::int64_t{1}}}), at::TensorOptions(at::kMeta)});
  Recipe recipe;
  const Offered offered = find(planning::Kind::kStrategy, strategy);
  offered.code().apply_strategy({strategy, offered.options(given)}, recipe, *model);
  return recipe;
}

std::vector<Parameter> with_gradients(const std::vector<at::Tensor>& gradients) {
  std::vector<Parameter> parameters;
  for (const at::Tensor& gradient : gradients) {
    parameters.push_back({"p", at::zeros_like(gradient).set_requires_grad(true)});
    parameters.back().tensor.mutable_grad() = gradient.clone();
  }
  return parameters;
}

// One step with these gradients, scaled as backward would have them. Returns the scale that the
// loss had, and whether there is an update.
std::pair<double, bool> step(const Recipe& recipe, const std::vector<at::Tensor>& gradients) {
  const auto end = recipe.step_contexts.at(0)->enter_step();
  const at::Tensor loss = at::ones({});
  const double scale = recipe.loss_transforms.at(0)->apply(loss, {}).item<double>();
  EXPECT_EQ(loss.item<double>(), 1) << "the loss that is reported";
  std::vector<at::Tensor> scaled;
  for (const at::Tensor& gradient : gradients) scaled.push_back(gradient * scale);
  const auto parameters = with_gradients(scaled);
  const bool updates = recipe.gradient_transforms.at(0)->apply(parameters);
  for (std::size_t i = 0; updates && i < gradients.size(); ++i)
    EXPECT_TRUE(at::equal(parameters[i].tensor.grad(), gradients[i]));
  return {scale, updates};
}

TEST(LossScaling, AnInfiniteGradientSkipsTheUpdateAndHalvesTheScale) {
  const Recipe recipe = recipe_alone("loss-scaling", {});
  const at::Tensor fine = at::randn({5});
  at::Tensor infinite = at::randn({3});
  infinite[1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(step(recipe, {fine, fine}), std::pair(65536.0, true));
  EXPECT_EQ(step(recipe, {fine, infinite}), std::pair(65536.0, false));
  EXPECT_EQ(step(recipe, {fine, fine}), std::pair(32768.0, true));
  infinite[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(step(recipe, {infinite}), std::pair(32768.0, false));
  EXPECT_EQ(step(recipe, {fine}), std::pair(16384.0, true));
}

TEST(LossScaling, GrowsAfterStepsWithoutAnOverflow) {
  const Recipe recipe =
      recipe_alone("loss-scaling", {{"init_scale", 8.0}, {"growth_interval", std::int64_t{2}}});
  for (const double scale : {8.0, 8.0, 16.0, 16.0, 32.0})
    EXPECT_EQ(step(recipe, {at::randn({4})}), std::pair(scale, true));
}

TEST(LossScaling, TakesGradientsOfSeveralDtypes) {
  const Recipe recipe = recipe_alone("loss-scaling", {});
  EXPECT_TRUE(step(recipe, {at::randn({4}), at::ones({2}, at::kDouble)}).second);
}

double norm_of(const std::vector<Parameter>& parameters, double p) {
  std::vector<at::Tensor> flat;
  for (const auto& [name, tensor] : parameters) flat.push_back(tensor.grad().flatten());
  return at::linalg_vector_norm(at::cat(flat), p).item<double>();
}

TEST(Clip, TheNormOfAllGradientsTogetherIsBounded) {
  for (const std::string type : {"1", "2", "inf"}) {
    const double p = std::stod(type);
    const Recipe recipe = recipe_alone("clip", {{"max_norm", 0.5}, {"norm_type", type}});
    const auto parameters = with_gradients({at::ones({3, 4}), at::full({5}, -2.0)});
    EXPECT_TRUE(recipe.gradient_transforms.at(0)->apply(parameters));
    EXPECT_NEAR(norm_of(parameters, p), 0.5, 1e-6);
    EXPECT_FLOAT_EQ(
        (parameters[1].tensor.grad()[0] / parameters[0].tensor.grad()[0][0]).item<float>(), -2);
  }
}

TEST(Clip, WhatIsBelowTheBoundStays) {
  const Recipe recipe = recipe_alone("clip", {{"max_norm", 100.0}});
  const at::Tensor gradient = at::randn({7});
  const auto parameters = with_gradients({gradient});
  EXPECT_TRUE(recipe.gradient_transforms.at(0)->apply(parameters));
  EXPECT_TRUE(at::equal(parameters[0].tensor.grad(), gradient));
}

}  // namespace
}  // namespace peakbench::test
