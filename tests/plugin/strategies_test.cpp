// Every strategy and model of the plugin folder: its manifest held against its code. Then LoRA's
// choice of layers.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "offered.h"
#include "peakbench/device_graph.h"
#include "worker/recipe_members.h"

namespace peakbench::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::ThrowsMessage;
using testing::UnorderedElementsAreArray;

// On the meta device, unless another is asked for: no memory, no time.
std::unique_ptr<Model> make_model(const std::string& id, const Values& sizes,
                                  at::Device device = at::kMeta) {
  const Offered model = find(planning::Kind::kModel, id);
  return model.code().make_model(
      {id, model.options(sizes), at::TensorOptions(at::kBFloat16).device(device)});
}

std::unique_ptr<Model> tiny_vit() {
  return make_model("vit-b-16", {{"layers", std::int64_t{2}}, {"width", std::int64_t{48}}});
}

std::unique_ptr<Model> tiny_decoder(const std::string& id) {
  return make_model(id, {{"layers", std::int64_t{1}}});
}

// Baseline's recipe with the strategy's over it.
struct Filled {
  Recipe baseline, recipe;

  Filled(Model& model, const Offered& strategy, const StrategyContext& context) {
    const Offered first = find(planning::Kind::kStrategy, "baseline");
    first.code().apply_strategy({"baseline", first.options()}, baseline, model);
    recipe = baseline;
    strategy.code().apply_strategy(context, recipe, model);
  }

  std::set<std::string> changed_slots() const {
    std::set<std::string> slots;
    worker::for_each_slot([&](const char* slot, auto member) {
      if (recipe.*member != baseline.*member) slots.insert(slot);
    });
    return slots;
  }
};

class Strategies : public testing::TestWithParam<Offered> {};

class NoGraph : public DeviceGraph {
 public:
  void warm_up(const std::function<void()>&) override {}
  void capture(const std::function<void()>&) override {}
  void replay() override {}
  bool draws_random_numbers() const override { return false; }
};

TEST(CudaGraphs, NeedADeviceThatHasThem) {
  const Offered strategy = find(planning::Kind::kStrategy, "cuda-graphs");
  const auto model = tiny_vit();
  set_device_graph_maker(nullptr);
  EXPECT_THAT(
      [&] {
        Filled(*model, strategy, {"cuda-graphs", strategy.options()});
      },
      ThrowsMessage<Unsupported>(HasSubstr("needs a CUDA card, real or emulated")));
}

TEST_P(Strategies, ReadTheOptionsTheyDeclareAndTakeTheSlotsTheyClaim) {
  const Offered& strategy = GetParam();
  const auto model = tiny_vit();
  set_device_graph_maker(
      []() -> std::unique_ptr<DeviceGraph> { return std::make_unique<NoGraph>(); });
  const StrategyContext context{strategy.entry.id, strategy.options()};
  const Filled filled(*model, strategy, context);

  std::set<std::string> declared;
  for (const auto& option : strategy.entry.options) declared.insert(option.name);
  EXPECT_EQ(context.options.names_read(), declared);

  if (strategy.entry.id == "baseline") return;  // fills all slots and owns none
  std::set<std::string> changed = filled.changed_slots();
  EXPECT_THAT(changed, IsSupersetOf(strategy.entry.slots));
  for (const auto& slot : strategy.entry.slots) changed.erase(slot);
  EXPECT_THAT(changed, IsEmpty()) << "slots that the manifest does not claim";
}

INSTANTIATE_TEST_SUITE_P(, Strategies, testing::ValuesIn(offered(planning::Kind::kStrategy)),
                         [](const auto& info) {
                           std::string name = info.param.entry.id;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Applies LoRA, or another, and tells what is trained: path, shape, dtype.
std::vector<std::string> adapt(Model& model, const Values& given, const std::string& id = "lora") {
  const Offered lora = find(planning::Kind::kStrategy, id);
  const Filled filled(model, lora, {id, lora.options(given)});
  filled.recipe.adapters->apply(model);
  std::vector<std::string> trained;
  for (const auto& item : model.module().named_parameters()) {
    if (filled.recipe.freezing.at(0)({item.key(), item.value()})) continue;
    std::ostringstream text;
    text << item.key() << ' ' << item.value().sizes() << ' ' << item.value().scalar_type();
    trained.push_back(text.str());
  }
  return trained;
}

TEST(Lora, TrainsAdaptersAlone) {
  const std::string block = "encoder.layers.encoder_layer_";
  EXPECT_THAT(adapt(*tiny_vit(), {{"rank", std::int64_t{4}}}),
              ElementsAre(block + "0.mlp.0.lora.lora_A.default.weight [4, 48] Float",
                          block + "0.mlp.0.lora.lora_B.default.weight [3072, 4] Float",
                          block + "0.mlp.3.lora.lora_A.default.weight [4, 3072] Float",
                          block + "0.mlp.3.lora.lora_B.default.weight [48, 4] Float",
                          block + "1.mlp.0.lora.lora_A.default.weight [4, 48] Float",
                          block + "1.mlp.0.lora.lora_B.default.weight [3072, 4] Float",
                          block + "1.mlp.3.lora.lora_A.default.weight [4, 3072] Float",
                          block + "1.mlp.3.lora.lora_B.default.weight [48, 4] Float"));
}

TEST(Lora, AdaptsAttentionWhereItHasLayersOfItsOwn) {
  const auto trained = adapt(*tiny_decoder("llama-3.1-8b"), {});
  ASSERT_EQ(trained.size(), 8u);  // A and B of q, k, v, o
  EXPECT_EQ(trained[2],
            "model.layers.0.self_attn.k_proj.lora.lora_A.default.weight [8, 4096] Float");
  EXPECT_EQ(trained[3],
            "model.layers.0.self_attn.k_proj.lora.lora_B.default.weight [1024, 8] Float");
}

TEST(Lora, AdaptersCanHaveTheModelsDtype) {
  EXPECT_THAT(adapt(*tiny_vit(), {{"adapter_dtype", "model"}}).front(), HasSubstr("BFloat16"));
}

TEST(Lora, AdaptsTheOutputHeadWhereItHasWeightsOfItsOwn) {
  EXPECT_EQ(adapt(*tiny_decoder("llama-3.1-8b"), {{"targets", "output:q_proj"}}).size(), 4u);
}

TEST(Lora, SaysWhyAPartIsNotThere) {
  EXPECT_THAT(([] {
                adapt(*tiny_vit(), {{"targets", "mlp:q_proj"}});
              }),
              ThrowsMessage<Unsupported>(AllOf(HasSubstr("no q_proj layer"), HasSubstr("packed"))));
  EXPECT_THAT(([] {
                adapt(*tiny_decoder("qwen2.5-0.5b"), {{"targets", "output"}});
              }),
              ThrowsMessage<Unsupported>(AllOf(HasSubstr("no output layer"), HasSubstr("tied"))));
}

TEST(Lora, APartCanHaveARankOfItsOwn) {
  const auto trained = adapt(*tiny_decoder("llama-3.1-8b"), {{"targets", "output=2:q_proj"}});
  ASSERT_EQ(trained.size(), 4u);
  EXPECT_THAT(trained[0], HasSubstr("q_proj.lora.lora_A.default.weight [8, 4096]"));
  EXPECT_THAT(trained[2], HasSubstr("lm_head.lora.lora_A.default.weight [2, 4096]"));
}

TEST(Dora, TrainsALengthForEachOutputToo) {
  const auto trained = adapt(*tiny_vit(), {{"adapter_dtype", "model"}}, "dora");
  ASSERT_EQ(trained.size(), 12u);
  EXPECT_THAT(trained[2], HasSubstr("lora_magnitude_vector.default.weight [3072] BFloat16"));
}

TEST(Models, DeclareThePartsThatTheyHave) {
  for (const Offered& offer : offered(planning::Kind::kModel)) {
    const auto has_layers = [](const auto& option) { return option.name == "layers"; };
    const bool deep = std::ranges::any_of(offer.entry.options, has_layers);
    const auto model =
        make_model(offer.entry.id, deep ? Values{{"layers", std::int64_t{1}}} : Values{});
    std::set<std::string> parts;
    for (const NamedLinear& linear : model->linears()) parts.insert(linear.part);
    EXPECT_THAT(offer.entry.linears, UnorderedElementsAreArray(parts)) << offer.entry.id;
    for (const auto& missing : offer.entry.missing_linears)
      for (const auto& part : missing.parts)
        EXPECT_THAT(model->why_no_linear(part), HasSubstr(missing.reason)) << offer.entry.id;
  }
}

TEST(Attention, LeavesTheChoiceOfKernelsAsItWas) {
  const Offered attention = find(planning::Kind::kStrategy, "attention");
  const auto model = tiny_vit();
  const Filled filled(*model, attention, {"attention", attention.options({{"backend", "flash"}})});
  at::Context& context = at::globalContext();
  const bool cudnn_before = context.userEnabledCuDNNSDP();
  context.setSDPUseMath(true);
  {
    const auto step = filled.recipe.step_contexts.at(0)->enter_step();
    EXPECT_TRUE(context.userEnabledFlashSDP());
    EXPECT_FALSE(context.userEnabledMathSDP() || context.userEnabledMemEfficientSDP() ||
                 context.userEnabledCuDNNSDP());
  }
  EXPECT_TRUE(context.userEnabledMathSDP());
  EXPECT_EQ(context.userEnabledCuDNNSDP(), cudnn_before);
}

// What the strategy says of a tiny model in the memory of the host.
template <typename Error>
void expect_refusal(const std::string& id, const Values& given, const std::string& words) {
  const Offered strategy = find(planning::Kind::kStrategy, id);
  const auto model = make_model("vit-b-16",
                                {{"layers", std::int64_t{1}},
                                 {"width", std::int64_t{48}},
                                 {"mlp", std::int64_t{48}},
                                 {"image", std::int64_t{32}}},
                                at::kCPU);
  EXPECT_THAT(
      [&] {
        Filled(*model, strategy, {id, strategy.options(given)});
      },
      ThrowsMessage<Error>(HasSubstr(words)));
}

TEST(Refusals, SayWhatToDo) {
  expect_refusal<Unsupported>("attention", {{"backend", "cudnn"}}, "on the CPU there are math and");
  expect_refusal<Unsupported>("activation-offload", {{"overlap", std::int64_t{5}}},
                              "use overlap=0");
  expect_refusal<OptionError>("checkpointing", {{"every", std::int64_t{2}}, {"segments", "sqrt"}},
                              "one of the two");
  expect_refusal<OptionError>("freeze", {{"modules", ""}}, "modules is empty");
}

}  // namespace
}  // namespace peakbench::test
