// Wrappers around update rules: what they keep, in closed form, and what they change. That training
// is as stock PyTorch's is held by the parity tests.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "offered.h"
#include "peakbench/state_map.h"

namespace peakbench::test {
namespace {

using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing::UnorderedElementsAre;

constexpr double kLr = 0.5;
const std::string kBlock = "encoder.layers.encoder_layer_0.";

// p -= lr g, and g as its state: every number has a closed form.
class Sgd : public UpdateRule {
 public:
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    for (const auto& [name, parameter] : parameters) {
      if (!parameter.grad().defined()) continue;
      at::Tensor& last = states_.of(parameter, [&] { return at::empty_like(parameter.grad()); });
      last.copy_(parameter.grad());
      parameter.sub_(parameter.grad(), kLr);
    }
  }
  void visit_state(const StateVisitor& visit) override {
    for (auto& [parameter, last] : states_) visit(parameter, "last", last);
  }
  void forget(const at::Tensor& parameter) override { states_.forget(parameter); }

 private:
  StateMap<at::Tensor> states_;
};

// What a listener sees of a training.
class OnlyParameters : public Training {
 public:
  explicit OnlyParameters(std::vector<Parameter> parameters) : parameters_(std::move(parameters)) {}
  const std::vector<Parameter>& parameters() const override { return parameters_; }
  const Recipe& recipe() const override { throw std::logic_error("no recipe"); }
  void update_all() override {}
  void update(const std::vector<Parameter>&) override {}
  void on_gradient(GradientCallback) override {}
  void count_update() override {}
  void set_trainable(const Parameter&, bool) override {}
  void forget(const Parameter&) override {}

 private:
  std::vector<Parameter> parameters_;
};

// The strategy's recipe over the baseline's, for a ViT of one block; the parameters are the tests'.
Recipe recipe_of(const std::string& strategy, const Values& given = {}) {
  const Offered vit = find(planning::Kind::kModel, "vit-b-16");
  const auto model = vit.code().make_model(
      {"vit-b-16", vit.options({{"layers", std::int64_t{1}}}), at::TensorOptions(at::kMeta)});
  Recipe recipe;
  const Offered baseline = find(planning::Kind::kStrategy, "baseline");
  baseline.code().apply_strategy({"baseline", baseline.options()}, recipe, *model);
  const Offered offered = find(planning::Kind::kStrategy, strategy);
  offered.code().apply_strategy({strategy, offered.options(given)}, recipe, *model);
  return recipe;
}

std::shared_ptr<UpdateRule> around(const Recipe& recipe, std::shared_ptr<UpdateRule> inner) {
  return recipe.update_rule_wrappers.at(0).second->wrap(std::move(inner));
}
std::shared_ptr<UpdateRule> around_sgd(const std::string& strategy, const Values& given = {}) {
  return around(recipe_of(strategy, given), std::make_shared<Sgd>());
}
std::shared_ptr<UpdateRule> around_adam(const std::string& strategy, const Values& given = {}) {
  const Recipe recipe = recipe_of(strategy, given);
  return around(recipe, recipe.update_rule);
}

// Names -> bytes over all parameters, and whom each belongs to must be known.
std::map<std::string, std::size_t> state_bytes(UpdateRule& rule,
                                               const std::vector<Parameter>& parameters) {
  std::map<std::string, std::size_t> bytes;
  rule.visit_state([&](const at::Tensor& owner, const std::string& name, at::Tensor& state) {
    const auto is_owner = [&](const Parameter& one) { return one.tensor.is_same(owner); };
    EXPECT_TRUE(std::any_of(parameters.begin(), parameters.end(), is_owner)) << name;
    bytes[name] += state.nbytes();
  });
  return bytes;
}

at::Tensor state_of(UpdateRule& rule, const std::string& wanted) {
  at::Tensor found;
  rule.visit_state([&](const at::Tensor&, const std::string& name, at::Tensor& state) {
    if (name == wanted) found = state;
  });
  return found;
}

Parameter parameter(const std::string& name, at::IntArrayRef shape,
                    at::ScalarType dtype = at::kFloat) {
  at::manual_seed(static_cast<std::uint64_t>(shape.size()));
  return {name, at::randn(shape).to(dtype).set_requires_grad(true)};
}

void update(UpdateRule& rule, const std::vector<Parameter>& parameters,
            const std::vector<at::Tensor>& gradients) {
  at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    parameters[i].tensor.mutable_grad() = gradients[i].clone();
  rule.update(parameters, KernelGrouping::kForeach);
}

TEST(MasterWeights, TakeTwelveBytesAParameterWithAdam) {
  const std::vector<Parameter> parameters{parameter("a", {6, 4}, at::kBFloat16),
                                          parameter("b", {5}, at::kBFloat16)};
  const auto rule = around_adam("master-weights");
  for (int step = 0; step < 2; ++step)
    update(*rule, parameters, {at::ones({6, 4}, at::kBFloat16), at::ones({5}, at::kBFloat16)});
  const std::size_t values = 6 * 4 + 5;
  EXPECT_THAT(state_bytes(*rule, parameters),
              UnorderedElementsAre(Pair("step", 2 * 4), Pair("exp_avg", 4 * values),
                                   Pair("exp_avg_sq", 4 * values), Pair("master", 4 * values)));
}

TEST(MasterWeights, KeepWhatSixteenBitsWouldLose) {
  Parameter one{"a", at::ones({1}, at::kBFloat16).set_requires_grad(true)};
  const auto rule = around_sgd("master-weights");
  const at::Tensor small = at::full({1}, 0.0009765625, at::kBFloat16);  // 2^-10; bf16 has 8 bits
  update(*rule, {one}, {small});
  EXPECT_EQ(one.tensor.item<float>(), 1.0f) << "rounded back";
  for (int step = 1; step < 16; ++step) update(*rule, {one}, {small});
  EXPECT_EQ(state_of(*rule, "master").item<float>(), 1.0f - 16 * 0.5f * 0.0009765625f);
  EXPECT_EQ(one.tensor.item<float>(), 0.9921875f);
  EXPECT_FALSE(one.tensor.grad().defined()) << "freed when it was converted";
}

TEST(MasterWeights, AMasterThatIsMovedKeepsItsState) {
  const std::vector<Parameter> parameters{parameter("a", {6, 4}, at::kBFloat16)};
  const auto rule = around_adam("master-weights");
  const auto plain = around_adam("master-weights");
  const Parameter same{"a", parameters[0].tensor.detach().clone().set_requires_grad(true)};
  for (int step = 0; step < 3; ++step) {
    const at::Tensor gradient = at::full({6, 4}, 0.1 * (step + 1), at::kBFloat16);
    update(*rule, parameters, {gradient});
    update(*plain, {same}, {gradient});
    rule->visit_state(
        [](const at::Tensor&, const std::string&, at::Tensor& state) { state = state.clone(); });
  }
  EXPECT_TRUE(at::equal(state_of(*rule, "master"), state_of(*plain, "master")));
  EXPECT_TRUE(at::equal(parameters[0].tensor, same.tensor));
  EXPECT_EQ(state_of(*rule, "step").item<float>(), 3);
}

TEST(MasterWeights, AreUnsupportedWhereNothingIsInSixteenBits) {
  const Recipe recipe = recipe_of("master-weights");
  OnlyParameters single({parameter("a", {2})}),
      mixed({parameter("a", {2}), parameter("b", {2}, at::kBFloat16)});
  EXPECT_THAT([&] { recipe.step_listeners.at(0)->on_step_begin(single, 0); },
              ThrowsMessage<Unsupported>(HasSubstr("--dtype bf16")));
  EXPECT_NO_THROW(recipe.step_listeners.at(0)->on_step_begin(mixed, 0));
}

TEST(Ema, IsTheAverageInClosedFormAndOneCopy) {
  const std::vector<Parameter> parameters{parameter("a", {3})};
  const auto rule = around_sgd("ema", {{"decay", 0.75}});
  at::Tensor expected;
  for (int step = 0; step < 3; ++step) {
    update(*rule, parameters, {at::full({3}, step + 1.0)});
    const at::Tensor now = parameters[0].tensor.detach().clone();
    expected = step == 0 ? now : 0.75 * expected + 0.25 * now;
  }
  EXPECT_TRUE(at::allclose(state_of(*rule, "ema"), expected));
  EXPECT_FALSE(at::allclose(state_of(*rule, "ema"), expected * 0.999)) << "the test would see it";
  EXPECT_THAT(state_bytes(*rule, parameters),
              UnorderedElementsAre(Pair("last", 3 * 4), Pair("ema", 3 * 4)));
}

TEST(Ema, HasNothingOfWhatIsNotTrained) {
  const std::vector<Parameter> parameters{parameter("a", {3})};
  const auto rule = around_sgd("ema");
  at::NoGradGuard no_grad;
  rule->update(parameters, KernelGrouping::kForeach);
  EXPECT_TRUE(state_bytes(*rule, parameters).empty());
  update(*rule, parameters, {at::ones({3})});
  rule->forget(parameters[0].tensor);
  EXPECT_TRUE(state_bytes(*rule, parameters).empty());
}

TEST(OptimizerOffload, UpdatesACopyAndBringsTheResultBack) {
  const std::vector<Parameter> parameters{parameter("a", {6, 4}), parameter("b", {5})};
  const std::vector<at::Tensor> before{parameters[0].tensor.detach().clone(),
                                       parameters[1].tensor.detach().clone()};
  const auto rule = around_sgd("optimizer-offload");
  update(*rule, parameters, {at::ones({6, 4}), at::full({5}, 2.0)});
  EXPECT_TRUE(at::equal(parameters[0].tensor, before[0] - kLr));
  EXPECT_TRUE(at::equal(parameters[1].tensor, before[1] - 2 * kLr));
  const std::size_t bytes = 4 * (6 * 4 + 5);
  EXPECT_THAT(state_bytes(*rule, parameters),
              UnorderedElementsAre(Pair("last", bytes), Pair("host_copy", bytes)));
  rule->forget(parameters[0].tensor);
  EXPECT_THAT(state_bytes(*rule, parameters),
              UnorderedElementsAre(Pair("last", 4 * 5), Pair("host_copy", 4 * 5)));
}

TEST(GradientOffload, AddsMicroBatchesOnTheHostAndLeavesOneGradient) {
  const Recipe recipe = recipe_of("gradient-offload");
  const Parameter one = parameter("a", {3});
  GradientHook& hook = *recipe.gradient_hooks.at(0).second;
  at::NoGradGuard no_grad;
  for (const double value : {1.0, 2.0, 4.0}) {
    one.tensor.mutable_grad() = at::full({3}, value);
    const void* here = one.tensor.grad().const_data_ptr();
    hook.on_gradient(one, {.last_micro_batch = value == 4.0});
    EXPECT_EQ(one.tensor.grad().defined(), value == 4.0);
    if (one.tensor.grad().defined()) {
      EXPECT_NE(one.tensor.grad().const_data_ptr(), here);
    }
  }
  EXPECT_TRUE(at::equal(one.tensor.grad(), at::full({3}, 7.0)));

  const at::Tensor before = one.tensor.detach().clone();
  around(recipe, std::make_shared<Sgd>())->update({one}, KernelGrouping::kForeach);
  EXPECT_TRUE(at::equal(one.tensor, before - 7 * kLr));
  EXPECT_FALSE(one.tensor.grad().defined()) << "freed with its update";
}

// Notes where its state is, and whose is beside it.
class Watched : public Sgd {
 public:
  void update(const std::vector<Parameter>& parameters, KernelGrouping grouping) override {
    EXPECT_EQ(parameters.size(), 1u);
    Sgd::update(parameters, grouping);
    visit_state([&](const at::Tensor& owner, const std::string&, at::Tensor& state) {
      if (owner.is_same(parameters[0].tensor)) seen[owner.unsafeGetTensorImpl()] = state;
    });
  }
  std::map<const at::TensorImpl*, at::Tensor> seen;
};

TEST(Paged, StateIsElsewhereBetweenUpdatesAndTheSameInThem) {
  const std::vector<Parameter> parameters{parameter("a", {6, 4}), parameter("b", {5})};
  const auto watched = std::make_shared<Watched>();
  const auto rule = around(recipe_of("paged"), watched);
  for (int step = 0; step < 2; ++step) {
    update(*rule, parameters, {at::full({6, 4}, step + 1.0), at::full({5}, step + 2.0)});
    rule->visit_state([&](const at::Tensor& owner, const std::string&, at::Tensor& state) {
      const at::Tensor& in_update = watched->seen.at(owner.unsafeGetTensorImpl());
      EXPECT_NE(state.const_data_ptr(), in_update.const_data_ptr());
      EXPECT_TRUE(at::equal(state, in_update));
    });
  }
  EXPECT_TRUE(
      at::equal(watched->seen.at(parameters[1].tensor.unsafeGetTensorImpl()), at::full({5}, 3.0)));
}

TEST(Galore, StateIsThePapersInClosedForm) {
  const std::int64_t rank = 2;
  const std::vector<Parameter> parameters{
      parameter(kBlock + "wide", {4, 6}), parameter(kBlock + "tall", {7, 5}),
      parameter(kBlock + "thin", {9, 2}), parameter(kBlock + "bias", {4}),
      parameter("heads.head.weight", {4, 6})};
  const auto rule = around_adam("galore", {{"rank", rank}});
  std::vector<at::Tensor> gradients;
  for (const auto& [name, tensor] : parameters) gradients.push_back(at::randn(tensor.sizes()));
  for (int step = 0; step < 2; ++step) update(*rule, parameters, gradients);
  // Algorithm 2: m r + 2 n r of an m x n matrix with m <= n; as usual where no side is above r,
  // where it is no matrix, and outside of the blocks.
  const std::size_t projections = 4 * (4 + 5) * rank;
  const std::size_t moments = 4 * ((6 + 7) * rank + 9 * 2 + 4 + 4 * 6);
  EXPECT_THAT(state_bytes(*rule, parameters),
              UnorderedElementsAre(Pair("step", 5 * 4), Pair("projection", projections),
                                   Pair("exp_avg", moments), Pair("exp_avg_sq", moments)));
}

TEST(Galore, TheUpdateIsTheGradientsPartInTheLeadingSubspace) {
  const auto rule = around_sgd("galore", {{"rank", std::int64_t{2}}, {"scale", 0.25}});
  const std::vector<Parameter> parameters{parameter(kBlock + "wide", {4, 6}),
                                          parameter(kBlock + "tall", {7, 5})};
  const std::vector<at::Tensor> before{parameters[0].tensor.detach().clone(),
                                       parameters[1].tensor.detach().clone()};
  const std::vector<at::Tensor> gradients{at::randn({4, 6}), at::randn({7, 5})};
  update(*rule, parameters, gradients);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto [u, s, vh] = at::linalg_svd(gradients[i], false);
    const at::Tensor leading =
        at::matmul(u.narrow(1, 0, 2) * s.narrow(0, 0, 2), vh.narrow(0, 0, 2));
    const at::Tensor change = parameters[i].tensor.detach() - before[i];
    EXPECT_TRUE(at::allclose(change, leading * (-kLr * 0.25), 1e-4, 1e-5));
    EXPECT_FALSE(at::allclose(change, gradients[i] * (-kLr * 0.25), 1e-4, 1e-5))
        << "rank 2 of a random matrix is not all of it";
    EXPECT_FALSE(parameters[i].tensor.grad().defined());
  }
}

TEST(Galore, TheProjectionStaysForUpdateGapUpdates) {
  const auto rule =
      around_sgd("galore", {{"rank", std::int64_t{2}}, {"update_gap", std::int64_t{2}}});
  const std::vector<Parameter> parameters{parameter(kBlock + "a", {4, 6})};
  std::vector<at::Tensor> projections;
  for (int step = 0; step < 3; ++step) {
    update(*rule, parameters, {at::randn({4, 6})});
    projections.push_back(state_of(*rule, "projection").clone());
  }
  EXPECT_TRUE(at::equal(projections[0], projections[1]));
  EXPECT_FALSE(at::equal(projections[1], projections[2]));
}

TEST(Apollo, StateIsThePapersInClosedForm) {
  const std::int64_t rank = 2;
  const std::vector<Parameter> parameters{parameter(kBlock + "wide", {4, 6}),
                                          parameter(kBlock + "tall", {7, 5}),
                                          parameter(kBlock + "bias", {4})};
  const auto rule = around_adam("apollo", {{"rank", rank}});
  for (int step = 0; step < 2; ++step)
    update(*rule, parameters, {at::randn({4, 6}), at::randn({7, 5}), at::randn({4})});
  const std::size_t moments = 4 * ((6 + 7) * rank + 4);  // 2 n r of an m x n matrix with m <= n
  EXPECT_THAT(state_bytes(*rule, parameters),
              UnorderedElementsAre(Pair("step", 3 * 4), Pair("exp_avg", moments),
                                   Pair("exp_avg_sq", moments)));
}

TEST(Apollo, ScalesEachChannelAsTheRuleScalesItsProjection) {
  const std::vector<Parameter> parameters{parameter(kBlock + "tall", {7, 5})};
  const at::Tensor before = parameters[0].tensor.detach().clone();
  const at::Tensor gradient = at::randn({7, 5});
  // A rule that scales nothing: with it, APOLLO is that rule on the whole gradient.
  update(*around_sgd("apollo", {{"rank", std::int64_t{2}}, {"scale", 0.5}}), parameters,
         {gradient});
  EXPECT_TRUE(at::allclose(parameters[0].tensor.detach() - before, gradient * (-kLr * 0.5)));
  // Adam scales; channels, the longer side, keep their directions and not their lengths.
  const at::Tensor again = parameters[0].tensor.detach().clone();
  update(*around_adam("apollo", {{"rank", std::int64_t{2}}}), parameters, {gradient});
  const at::Tensor change = parameters[0].tensor.detach() - again;
  const at::Tensor cosines = at::cosine_similarity(change, gradient, 1);
  EXPECT_TRUE(at::allclose(cosines, at::full({7}, -1.0), 1e-3, 1e-3));
  EXPECT_FALSE(at::allclose(change / gradient, (change / gradient)[0][0].expand({7, 5}), 1e-2));
}

TEST(Galore, IsUnsupportedWhereNothingIsProjected) {
  const Recipe recipe = recipe_of("galore", {{"rank", std::int64_t{4}}});
  OnlyParameters small({parameter(kBlock + "a", {4, 6}), parameter("head", {9, 9})});
  EXPECT_THAT([&] { recipe.step_listeners.at(0)->on_step_begin(small, 0); },
              ThrowsMessage<Unsupported>(HasSubstr("choose a smaller rank")));
}

}  // namespace
}  // namespace peakbench::test
