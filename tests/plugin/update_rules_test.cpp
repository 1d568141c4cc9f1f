// The update rules' own arithmetic: bytes of state and of temporaries in closed form, what they
// refuse, what they forget, and that a wrong value in their state is noticed. Their numbers and
// allocations are held against stock PyTorch by the parity tests.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "no_model.h"
#include "offered.h"
#include "parity/byte_counter.h"
#include "plugins/adamw_low_bit/quantisation_map.h"
#include "plugins/baseline/adam.h"
#include "plugins/muon/orthogonalise.h"

namespace peakbench::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

using Rule = std::shared_ptr<UpdateRule>;

ByteCounter& counter() {
  static ByteCounter& the_counter = ByteCounter::install();
  return the_counter;
}

// Random values and a random gradient, the same for the same seed.
Parameter parameter(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat,
                    const std::string& name = "blocks.0.weight") {
  at::manual_seed(1);
  Parameter made{name, at::randn(shape, dtype).set_requires_grad(true)};
  made.tensor.mutable_grad() = at::randn(shape, dtype);
  return made;
}

void update(UpdateRule& rule, const std::vector<Parameter>& parameters,
            KernelGrouping grouping = KernelGrouping::kSingle) {
  const at::NoGradGuard no_grad;
  rule.update(parameters, grouping);
}

std::map<std::string, std::int64_t> state_bytes(UpdateRule& rule) {
  std::map<std::string, std::int64_t> bytes;
  rule.visit_state([&](const at::Tensor&, const std::string& name, at::Tensor& state) {
    bytes[name] += static_cast<std::int64_t>(state.nbytes());
  });
  return bytes;
}

std::int64_t sum(const std::map<std::string, std::int64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0},
                         [](auto total, const auto& one) { return total + one.second; });
}

// Of one update of one parameter.
std::int64_t state_of(UpdateRule& rule, const Parameter& parameter) {
  update(rule, {parameter});
  return sum(state_bytes(rule));
}

// As the strategy puts it into a recipe that had `before`.
Rule rule_of(const std::string& strategy, const Values& given = {}, Rule before = nullptr) {
  const Offered offered = find(planning::Kind::kStrategy, strategy);
  NoModel model({"blocks"});
  Recipe recipe;
  recipe.update_rule = std::move(before);
  offered.code().apply_strategy({strategy, offered.options(given)}, recipe, model);
  return recipe.update_rule;
}

Rule low_bit(int bits, std::int64_t block_size) {
  return rule_of("adamw-" + std::to_string(bits) + "bit",
                 {{"lr", 0.02}, {"block_size", std::to_string(block_size)}});
}

TEST(Sgd, KeepsAValueAParameterOnlyForMomentum) {
  const Rule plain = rule_of("sgd", {{"momentum", 0.0}});
  const Rule with_momentum = rule_of("sgd", {{"momentum", 0.9}});
  EXPECT_EQ(state_of(*plain, parameter({5, 7})), 0);
  EXPECT_EQ(state_of(*with_momentum, parameter({5, 7})), 5 * 7 * 4);
  EXPECT_EQ(state_of(*with_momentum, parameter({3}, at::kBFloat16)), 5 * 7 * 4 + 3 * 2);
}

TEST(Sgd, RefusesNesterovWithoutMomentum) {
  EXPECT_THAT(
      [] {
        rule_of("sgd", {{"momentum", 0.0}, {"nesterov", true}});
      },
      ThrowsMessage<OptionError>(HasSubstr("momentum=0.9")));
}

TEST(Lion, KeepsOneValueAParameter) {
  EXPECT_EQ(state_of(*rule_of("lion"), parameter({5, 7})), 5 * 7 * 4);
}

TEST(Adafactor, KeepsRowsAndColumnsOfAMatrix) {
  const auto bytes = [](at::IntArrayRef shape) {
    return state_of(*rule_of("adafactor"), parameter(shape));
  };
  EXPECT_EQ(bytes({6, 10}), (6 + 10) * 4 + 4);
  EXPECT_EQ(bytes({2, 3, 4, 5}), (2 * 3 * 4 + 2 * 3 * 5) * 4 + 4);
  EXPECT_EQ(bytes({7}), 7 * 4 + 4);
}

// Keeps the names of what it is asked to update.
struct Recorded : UpdateRule {
  void update(const std::vector<Parameter>& parameters, KernelGrouping) override {
    for (const Parameter& parameter : parameters) names.push_back(parameter.name);
  }
  void visit_state(const StateVisitor&) override {}
  void forget(const at::Tensor&) override {}
  std::vector<std::string> names;
};

TEST(Muon, LeavesWhatIsNoMatrixOfAHiddenLayerToTheOtherRule) {
  const auto rest = std::make_shared<Recorded>();
  const Rule rule = rule_of("muon", {}, rest);
  update(*rule, {parameter({4, 8}, at::kFloat, "embedding.weight"), parameter({4, 8}),
                 parameter({8}, at::kFloat, "blocks.0.bias"),
                 parameter({8, 4, 2}, at::kFloat, "blocks.0.kernel")});
  EXPECT_THAT(rest->names, ElementsAre("embedding.weight", "blocks.0.bias", "blocks.0.kernel"));
  EXPECT_EQ(sum(state_bytes(*rule)), 4 * 8 * 4);
}

TEST(Muon, MakesEverySingularValueNearlyOne) {
  at::manual_seed(1);
  for (const at::Tensor& matrix : {at::randn({48, 16}), at::randn({16, 48})}) {
    const at::Tensor result = muon::orthogonalise(matrix, 5);
    EXPECT_EQ(result.sizes(), matrix.sizes());
    const at::Tensor values = at::linalg_svdvals(result.to(at::kFloat));
    EXPECT_GT(values.min().item<float>(), 0.6);
    EXPECT_LT(values.max().item<float>(), 1.3);
  }
}

TEST(FusedAdam, HasItsStepBesideTheParameterAndNoTemporaries) {
  baseline::Adam rule({});
  const Parameter one = parameter({64, 64});
  counter();
  update(rule, {one}, KernelGrouping::kFused);
  EXPECT_EQ(sum(state_bytes(rule)), 2 * 64 * 64 * 4 + 4);
  rule.visit_state([&](const at::Tensor&, const std::string& name, at::Tensor& state) {
    if (name == "step") {
      EXPECT_EQ(state.item<float>(), 1);
    }
  });
  const std::int64_t before = counter().alive_bytes();
  counter().begin_phase("second update");
  update(rule, {one}, KernelGrouping::kFused);
  EXPECT_EQ(counter().alive_bytes(), before);
  EXPECT_LE(counter().peak_bytes() - before, 16);  // numbers, for the step
}

TEST(FusedAdam, ComputesWhatTheSingleKernelsCompute) {
  for (const double weight_decay : {0.0, 0.1}) {
    baseline::Adam fused({.weight_decay = weight_decay}), single({.weight_decay = weight_decay});
    const Parameter a = parameter({64, 63}), b = parameter({64, 63});
    for (int step = 0; step < 3; ++step) {
      update(fused, {a}, KernelGrouping::kFused);
      update(single, {b});
    }
    EXPECT_TRUE(at::allclose(a.tensor, b.tensor, 1e-5, 1e-7));
  }
}

TEST(LowBitAdamW, KeepsTorchaosBytes) {
  const auto bytes = [](int bits, std::int64_t block, std::int64_t values) {
    return state_of(*low_bit(bits, block), parameter({values}));
  };
  // Codes, a scale a block, a map; for each of two moments. And the step.
  EXPECT_EQ(bytes(8, 256, 8192), 2 * (8192 + 8192 / 256 * 4 + 256 * 4) + 4);
  EXPECT_EQ(bytes(4, 128, 8192), 2 * (8192 / 2 + 8192 / 128 * 4 + 16 * 4) + 4);
  EXPECT_EQ(bytes(8, 256, 4096), 2 * (4096 + 4096 / 256 * 4 + 256 * 4) + 4);
  // Too small, or not whole blocks.
  EXPECT_EQ(bytes(8, 256, 4095), 2 * 4095 * 4 + 4);
  EXPECT_EQ(bytes(8, 256, 8192 + 128), 2 * (8192 + 128) * 4 + 4);
  EXPECT_EQ(bytes(4, 128, 8192 + 128), 2 * (8320 / 2 + 8320 / 128 * 4 + 16 * 4) + 4);
  EXPECT_EQ(state_of(*low_bit(8, 256), parameter({100}, at::kBFloat16)), 2 * 100 * 2 + 4);
}

TEST(LowBitAdamW, AnotherMemoryFormatIsUpdatedLikeAContiguousOne) {
  for (const std::int64_t width : {8, 64}) {  // too small to be quantised; quantised
    const Parameter one = parameter({width, width, 3, 3});
    Parameter other{one.name, one.tensor.detach().clone(at::MemoryFormat::ChannelsLast)};
    other.tensor.mutable_grad() = one.tensor.grad().clone(at::MemoryFormat::ChannelsLast);
    const Rule first = low_bit(8, 256), second = low_bit(8, 256);
    for (int step = 0; step < 2; ++step) {
      update(*first, {one});
      update(*second, {other});
    }
    EXPECT_TRUE(at::equal(one.tensor, other.tensor)) << width;
    EXPECT_TRUE(other.tensor.is_contiguous(at::MemoryFormat::ChannelsLast)) << width;
  }
}

TEST(LowBitAdamW, HasTemporariesOfOnePartAlone) {
  const auto temporaries = [](int bits, std::int64_t values, at::ScalarType dtype) {
    const Rule rule = low_bit(bits, 256);
    const Parameter one = parameter({values}, dtype);
    update(*rule, {one});
    const std::int64_t before = counter().alive_bytes();
    counter().begin_phase("second update");
    update(*rule, {one});
    return counter().peak_bytes() - before;
  };
  // While a moment's nearest codes are chosen. Eight tensors of 4 bytes a value: both moments (of a
  // 16-bit parameter the first moment and the gradient in float32), the values in units of their
  // block's scale, the code below and the one above, what the one below stands for, half the gap,
  // and the distance; and one byte a value, which says which code is nearer.
  constexpr std::int64_t kBytesAValue = 8 * 4 + 1;
  constexpr std::int64_t kPart = 1 << 20;  // values at once
  for (const int bits : {8, 4}) {
    for (const std::int64_t values : {std::int64_t{4096}, kPart, kPart + 4096})
      EXPECT_EQ(temporaries(bits, values, at::kFloat), kBytesAValue * std::min(values, kPart))
          << bits << " bits, " << values << " values";
    EXPECT_EQ(temporaries(bits, 8192, at::kBFloat16), kBytesAValue * 8192) << bits << " bits";
  }
  // Too small to be quantised: both moments in float32; in 16 bits also the gradient, then the
  // result. And a number that they are multiplied by, as a double and as a float.
  constexpr std::int64_t kNumber = 8 + 4;
  EXPECT_EQ(temporaries(8, 4095, at::kFloat), 2 * 4 * 4095 + kNumber);
  EXPECT_EQ(temporaries(8, 4095, at::kBFloat16), 3 * 4 * 4095 + kNumber);
}

TEST(LowBitAdamW, ItsMapsAreThoseOfThePapers) {
  const auto signed8 = adamw_low_bit::dynamic_map(true, 8);
  const auto unsigned8 = adamw_low_bit::dynamic_map(false, 8);
  EXPECT_EQ(signed8.size(), 256u);
  EXPECT_EQ(unsigned8.size(), 256u);
  for (const auto& map : {signed8, unsigned8, adamw_low_bit::linear_map()}) {
    EXPECT_TRUE(std::is_sorted(map.begin(), map.end()));
    EXPECT_EQ(std::adjacent_find(map.begin(), map.end()), map.end()) << "a code is wasted";
    EXPECT_EQ(map.back(), 1);
  }
  EXPECT_FLOAT_EQ(signed8.front(), -0.9929687f);
  EXPECT_EQ(unsigned8.front(), 0);
  EXPECT_FLOAT_EQ(unsigned8[1], 3.25e-7f);
  // By hand, from the definition: halves, quarters and eighths of [0.1, 1] at three exponents.
  const auto signed4 = adamw_low_bit::dynamic_map(true, 4);
  const std::vector<float> positive = {0,       0.0055f, 0.0325f, 0.0775f, 0.2125f,
                                       0.4375f, 0.6625f, 0.8875f, 1};
  ASSERT_EQ(signed4.size(), 16u);
  for (std::size_t i = 0; i < positive.size(); ++i)
    EXPECT_FLOAT_EQ(signed4[7 + i], positive[i]) << i;
  EXPECT_FLOAT_EQ(adamw_low_bit::linear_map().front(), 1.f / 16);
}

// The loss of a linear regression, 64 to 64 features from zero, after 200 steps; it begins at 64.
double regression_loss(UpdateRule& rule) {
  at::set_num_threads(1);
  at::manual_seed(2);
  const at::Tensor inputs = at::randn({256, 64}), outputs = inputs.matmul(at::randn({64, 64}));
  const Parameter weight{"weight", at::zeros({64, 64}).set_requires_grad(true)};
  const at::NoGradGuard no_grad;
  const auto error = [&] { return inputs.matmul(weight.tensor) - outputs; };
  for (int step = 0; step < 200; ++step) {
    weight.tensor.mutable_grad() = inputs.t().matmul(error()) * (2.0 / outputs.numel());
    rule.update({weight}, KernelGrouping::kSingle);
  }
  return error().square().mean().item<double>();
}

TEST(LowBitAdamW, Converges) {
  baseline::Adam adam({.lr = 0.02, .weight_decay = 0.01});
  const double full = regression_loss(adam);
  EXPECT_LT(full, 0.5);
  EXPECT_LT(regression_loss(*low_bit(8, 256)), 1.2 * full);
  EXPECT_LT(regression_loss(*low_bit(4, 128)), 5);  // the same as torchao's, without a zero in v
}

struct Made {
  std::string name;
  std::function<Rule()> make;
};

class StatefulRules : public testing::TestWithParam<Made> {
 protected:
  Rule rule() { return GetParam().make(); }
};

TEST_P(StatefulRules, AWrongValueInTheirStateIsNoticed) {
  const auto train = [&](bool planted) {
    const Rule own = rule();
    const Parameter one = parameter({64, 128});
    update(*own, {one});
    own->visit_state([&](const at::Tensor&, const std::string& name, at::Tensor& state) {
      if (!planted || name == "step") return;
      const at::Tensor first = state.view(-1).slice(0, 0, 1);
      state.scalar_type() == at::kByte ? first.bitwise_xor_(255) : first.mul_(-100);
    });
    update(*own, {one});
    return one.tensor.detach().clone();
  };
  EXPECT_TRUE(at::equal(train(false), train(false)));
  EXPECT_FALSE(at::equal(train(false), train(true)));
}

TEST_P(StatefulRules, ForgetOneParameterAndKeepTheOther) {
  const Rule own = rule();
  const Parameter one = parameter({64, 128}), other = parameter({64, 128});
  update(*own, {one, other});
  const std::int64_t both = sum(state_bytes(*own));
  own->forget(one.tensor);
  EXPECT_EQ(sum(state_bytes(*own)) * 2, both);
  own->visit_state([&](const at::Tensor& parameter, const std::string&, at::Tensor&) {
    EXPECT_TRUE(parameter.is_same(other.tensor));
  });
  own->forget(other.tensor);
  EXPECT_THAT(state_bytes(*own), IsEmpty());
}

TEST_P(StatefulRules, PassOverWhatHasNoGradient) {
  const Rule own = rule();
  const Parameter one = parameter({64, 128});
  one.tensor.mutable_grad().reset();
  for (const auto grouping : {KernelGrouping::kSingle, KernelGrouping::kForeach})
    update(*own, {one}, grouping);
  EXPECT_THAT(state_bytes(*own), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    , StatefulRules,
    testing::Values(Made{"adam",
                         [] { return std::make_shared<baseline::Adam>(baseline::AdamOptions{}); }},
                    Made{"sgd",
                         [] {
                           return rule_of("sgd", {{"momentum", 0.9}});
                         }},
                    Made{"lion", [] { return rule_of("lion"); }},
                    Made{"adafactor", [] { return rule_of("adafactor"); }},
                    Made{"muon", [] { return rule_of("muon", {}, std::make_shared<Recorded>()); }},
                    Made{"adamw8bit", [] { return low_bit(8, 256); }},
                    Made{"adamw4bit", [] { return low_bit(4, 128); }}),
    [](const auto& info) { return info.param.name; });

TEST(FusedGrouping, IsRefusedByRulesWithoutSuchAKernel) {
  for (const Rule& rule :
       {rule_of("sgd"), rule_of("lion"), rule_of("adafactor"), low_bit(8, 256)}) {
    EXPECT_THAT(
        [&] {
          update(*rule, {parameter({4, 4})}, KernelGrouping::kFused);
        },
        ThrowsMessage<Unsupported>(HasSubstr("fused kernel")));
  }
}

}  // namespace
}  // namespace peakbench::test
