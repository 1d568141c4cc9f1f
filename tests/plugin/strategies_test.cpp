// Every strategy of the plugin folder: its manifest held against its code. Then LoRA's choice of
// layers.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manifest/manifest.h"
#include "peakbench/plugin.h"

namespace peakbench::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::ThrowsMessage;

using Values = std::map<std::string, Options::Value>;

Options::Value value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

// An id with its entry, and its options: the defaults with `given` over them.
struct Offered {
  std::string path;
  manifest::Entry entry;

  const PluginEntry& code() const {
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(::dlerror());
    return *static_cast<const PluginEntry*>(::dlsym(library, "peakbench_plugin"));
  }
  Options options(const Values& given = {}) const {
    Values values = given;
    for (const auto& option : entry.options)
      values.try_emplace(option.name, value_of(option.default_value));
    return Options(values);
  }
};

void PrintTo(const Offered& offered, std::ostream* out) { *out << offered.entry.id; }

std::vector<Offered> offered(manifest::Kind kind) {
  std::vector<Offered> all;
  for (const auto& plugin : manifest::discover({PLUGIN_FOLDER}).plugins) {
    if (plugin.kind != kind) continue;
    for (const auto& entry : plugin.entries) all.push_back({plugin.path, entry});
  }
  return all;
}

Offered find(manifest::Kind kind, const std::string& id) {
  for (const Offered& one : offered(kind)) {
    if (one.entry.id == id) return one;
  }
  throw std::runtime_error("no plugin offers " + id);
}

// On the meta device: no memory, no time.
std::unique_ptr<Model> make_model(const std::string& id, const Values& sizes) {
  const Offered model = find(manifest::Kind::kModel, id);
  return model.code().make_model(
      {id, model.options(sizes), at::TensorOptions(at::kBFloat16).device(at::kMeta)});
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
    const Offered first = find(manifest::Kind::kStrategy, "baseline");
    first.code().make_strategy({"baseline", first.options()})->apply(baseline, model);
    recipe = baseline;
    strategy.code().make_strategy(context)->apply(recipe, model);
  }

  std::set<std::string> changed_slots() const {
    std::set<std::string> slots;
    const auto note = [&](const char* slot, bool changed) {
      if (changed) slots.insert(slot);
    };
    note("base_weights", recipe.base_weights != baseline.base_weights);
    note("adapters", recipe.adapters != baseline.adapters);
    note("update_rule", recipe.update_rule != baseline.update_rule);
    note("kernel_grouping", recipe.kernel_grouping != baseline.kernel_grouping);
    note("schedule", recipe.schedule != baseline.schedule);
    note("micro_batches", recipe.micro_batches != baseline.micro_batches);
    note("loss_head", recipe.loss_head != baseline.loss_head);
    return slots;
  }
};

class Strategies : public testing::TestWithParam<Offered> {};

TEST_P(Strategies, ReadTheOptionsTheyDeclareAndTakeTheSlotsTheyClaim) {
  const Offered& strategy = GetParam();
  const auto model = tiny_vit();
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

INSTANTIATE_TEST_SUITE_P(, Strategies, testing::ValuesIn(offered(manifest::Kind::kStrategy)),
                         [](const auto& info) {
                           std::string name = info.param.entry.id;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Applies LoRA and tells what is trained: path, shape, dtype.
std::vector<std::string> adapt(Model& model, const Values& given) {
  const Offered lora = find(manifest::Kind::kStrategy, "lora");
  const Filled filled(model, lora, {"lora", lora.options(given)});
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

TEST(Lora, RefusesANameThatIsNoPart) {
  EXPECT_THAT(
      ([] {
        adapt(*tiny_vit(), {{"targets", "mpl"}});
      }),
      ThrowsMessage<OptionError>(AllOf(HasSubstr("'mpl' is no part"), HasSubstr("mlp, output"))));
  EXPECT_THAT(([] {
                adapt(*tiny_vit(), {{"targets", ""}});
              }),
              ThrowsMessage<OptionError>(HasSubstr("targets is empty")));
}

}  // namespace
}  // namespace peakbench::test
