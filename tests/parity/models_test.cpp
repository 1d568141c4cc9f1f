// What the models' manifests say against what the plugins build, on the meta device: no memory is
// taken. Then initialisation, and options that do not fit.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "peakbench/errors.h"
#include "plugin_under_test.h"

namespace peakbench::test {
namespace {

using Given = std::map<std::string, std::string>;

const Given kTinyDecoder = {{"layers", "2"}, {"width", "32"},   {"mlp", "48"},
                            {"heads", "4"},  {"kv_heads", "2"}, {"vocabulary", "97"}};

const PluginUnderTest& decoder() {
  static const PluginUnderTest plugin(DECODER_LIBRARY, DECODER_MANIFEST);
  return plugin;
}

const PluginUnderTest& vit() {
  static const PluginUnderTest plugin(VIT_LIBRARY, VIT_MANIFEST);
  return plugin;
}

const PluginUnderTest& gpt2() {
  static const PluginUnderTest plugin(GPT2_LIBRARY, GPT2_MANIFEST);
  return plugin;
}

const PluginUnderTest& resnet() {
  static const PluginUnderTest plugin(RESNET_LIBRARY, RESNET_MANIFEST);
  return plugin;
}

struct Offered {
  const PluginUnderTest* plugin;
  std::string id;
};

void PrintTo(const Offered& offered, std::ostream* out) { *out << offered.id; }

std::vector<Offered> everything_offered() {
  std::vector<Offered> all;
  for (const PluginUnderTest* plugin : {&decoder(), &gpt2(), &resnet(), &vit()}) {
    for (const nlohmann::json& entry : plugin->manifest().at("entries")) {
      all.push_back({plugin, entry.at("id")});
    }
  }
  return all;
}

class Manifest : public testing::TestWithParam<Offered> {
 protected:
  const nlohmann::json& entry() const { return GetParam().plugin->entry(GetParam().id); }
  bool has_fact(const std::string& fact) const {
    const auto facts = entry().value("facts", nlohmann::json::array());
    return std::find(facts.begin(), facts.end(), fact) != facts.end();
  }

  ModelContext context_{GetParam().id, GetParam().plugin->options(GetParam().id, {}),
                        at::TensorOptions(at::kFloat).device(at::kMeta)};
  std::unique_ptr<Model> model_ = GetParam().plugin->make(context_);
};

TEST_P(Manifest, StatesTheNumberOfParameters) {
  std::int64_t parameters = 0;
  for (const at::Tensor& parameter : model_->module().parameters()) parameters += parameter.numel();
  EXPECT_EQ(parameters, entry().at("parameters").get<std::int64_t>());
}

TEST_P(Manifest, DeclaresTheOptionsThatAreRead) {
  std::set<std::string> declared;
  for (const nlohmann::json& option : entry().at("options")) declared.insert(option.at("name"));
  EXPECT_EQ(context_.options.names_read(), declared);
}

TEST_P(Manifest, NamesLinearLayersByTheirPaths) {
  const auto modules = model_->module().named_modules();
  for (const NamedLinear& linear : model_->linears()) {
    const auto* found = modules.find(linear.path);
    ASSERT_TRUE(found) << linear.path;
    EXPECT_EQ(found->get(), linear.layer) << linear.path;
  }
  EXPECT_EQ(model_->linears().empty(), !has_fact("linear_layers"));
  EXPECT_EQ(model_->block_paths().size() == 0, !has_fact("blocks"));
}

TEST_P(Manifest, SaysWhenTheOutputHeadIsTheEmbedding) {
  const auto linears = model_->linears();
  const bool head = std::any_of(linears.begin(), linears.end(),
                                [](const NamedLinear& linear) { return linear.part == "output"; });
  EXPECT_EQ(has_fact("tied_embeddings"), !linears.empty() && !head);
  EXPECT_EQ(has_fact("output_head"), model_->output_head().has_value());
  if (has_fact("tied_embeddings")) {
    EXPECT_EQ(model_->why_no_linear("output"), "the output head is tied to the embedding");
  }
}

INSTANTIATE_TEST_SUITE_P(, Manifest, testing::ValuesIn(everything_offered()),
                         [](const testing::TestParamInfo<Offered>& tested) {
                           std::string name = tested.param.id;
                           std::erase_if(name, [](char c) { return !std::isalnum(c); });
                           return name;
                         });

std::unique_ptr<Model> tiny_decoder(const std::string& id, const Given& more = {},
                                    at::ScalarType dtype = at::kFloat) {
  Given given = more;
  given.insert(kTinyDecoder.begin(), kTinyDecoder.end());
  return decoder().make({id, decoder().options(id, given), at::TensorOptions(dtype)});
}

at::Tensor embedding_of(Model& model) {
  return model.module().named_parameters()["model.embed_tokens.weight"].detach();
}

TEST(DecoderInitialisation, IsNormalOfTheStatedDeviation) {
  at::manual_seed(1);
  // More than one chunk, and not a whole number of them.
  const auto model = tiny_decoder("llama-3.1-8b", {{"vocabulary", "5001"}});
  const at::Tensor values = embedding_of(*model).to(at::kDouble);
  EXPECT_NEAR(values.mean().item<double>(), 0, 3e-4);
  EXPECT_NEAR(values.std().item<double>(), 0.02, 3e-4);
  EXPECT_NEAR(values.pow(4).mean().item<double>() / std::pow(0.02, 4), 3, 0.15);
  EXPECT_GT(std::get<0>(at::_unique(values)).numel(), values.numel() * 0.9);
}

TEST(DecoderInitialisation, FollowsTheSeedAndNotTheThreads) {
  const auto build = [](int threads, std::uint64_t seed) {
    at::set_num_threads(threads);
    at::manual_seed(seed);
    return embedding_of(*tiny_decoder("llama-3.1-8b", {{"vocabulary", "5001"}}));
  };
  const at::Tensor reference = build(1, 7);
  EXPECT_TRUE(at::equal(build(3, 7), reference));
  EXPECT_FALSE(at::equal(build(1, 8), reference));
}

TEST(DecoderInitialisation, IsTheSameInBfloat16ButForRounding) {
  at::manual_seed(7);
  const at::Tensor reference = embedding_of(*tiny_decoder("qwen2.5-0.5b"));
  at::manual_seed(7);
  const at::Tensor rounded = embedding_of(*tiny_decoder("qwen2.5-0.5b", {}, at::kBFloat16));
  EXPECT_TRUE(at::equal(rounded, reference.to(at::kBFloat16)));
}

std::string refusal(const Given& given) {
  try {
    tiny_decoder("llama-3.1-8b", given);
  } catch (const OptionError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DecoderOptions, SizesThatDoNotFitAreRefusedWithBothValues) {
  EXPECT_EQ(refusal({{"width", "33"}}), "width=33 is not a multiple of heads=4");
  EXPECT_EQ(refusal({{"kv_heads", "3"}}), "heads=4 is not a multiple of kv_heads=3");
  EXPECT_EQ(
      refusal({{"width", "12"}}),
      "width=12 over heads=4 gives heads of 3 features; rotary embeddings need an even number");
  EXPECT_EQ(refusal({{"width", "1032"}}),
            "width=1032 over heads=4 gives heads of 258 features; with fewer kv_heads than heads, "
            "256 is the most: give more heads");
  EXPECT_EQ(refusal({{"width", "1032"}, {"kv_heads", "4"}}), "accepted");
}

std::string refusal_of_blocks(const std::string& blocks) {
  try {
    resnet().make({"resnet-50", resnet().options("resnet-50", {{"blocks", blocks}}),
                   at::TensorOptions(at::kFloat).device(at::kMeta)});
  } catch (const OptionError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ResNetOptions, BlocksThatAreNotFourNumbersAreRefused) {
  EXPECT_EQ(refusal_of_blocks("1:1:2:64"), "accepted");
  for (const char* blocks : {"", "3", "3:4:6", "3:4:6:3:1", "3:4:6:", "3:4:0:3", "3:4:65:3",
                             "3:4:x:3", "3:4:6:3 ", "-1:4:6:3", "99999999999999999999:1:1:1"}) {
    EXPECT_EQ(refusal_of_blocks(blocks),
              std::string("blocks=") + blocks +
                  ": expected four numbers from 1 to 64 joined by ':', as in 3:4:6:3");
  }
}

TEST(ResNetOptions, ChannelsLastIsHowWeightsAndImagesLie) {
  for (const bool last : {false, true}) {
    const auto model =
        resnet().make({"resnet-50",
                       resnet().options("resnet-50", {{"blocks", "1:1:1:1"},
                                                      {"channels_last", last ? "true" : "false"}}),
                       at::TensorOptions(at::kFloat)});
    const at::Tensor weight = model->module().named_parameters()["layer1.0.conv2.weight"];
    EXPECT_EQ(weight.is_contiguous(at::MemoryFormat::ChannelsLast), last);
    EXPECT_EQ(model->make_batch({2, 0}).input.is_contiguous(at::MemoryFormat::ChannelsLast), last);
  }
}

TEST(VitOptions, ImagesThatAreNoWholePatchesAreRefused) {
  const auto refusal_of_image = [](const std::string& id, const std::string& image) -> std::string {
    try {
      vit().make({id, vit().options(id, {{"image", image}, {"layers", "1"}}),
                  at::TensorOptions(at::kFloat).device(at::kMeta)});
    } catch (const OptionError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal_of_image("vit-h-14", "28"), "accepted");
  EXPECT_EQ(refusal_of_image("vit-h-14", "32"),
            "image=32: the side of the image must be a multiple of 14");
  EXPECT_EQ(refusal_of_image("vit-b-16", "28"),
            "image=28: the side of the image must be a multiple of 16");
}

TEST(Gpt2Options, SizesAndSequencesThatDoNotFitAreRefused) {
  const Given tiny = {{"layers", "1"}, {"width", "8"},     {"mlp", "8"},
                      {"heads", "2"},  {"positions", "4"}, {"vocabulary", "9"}};
  const auto make = [](const Given& given) {
    return gpt2().make({"gpt2", gpt2().options("gpt2", given), at::TensorOptions(at::kFloat)});
  };
  Given odd = tiny;
  odd["width"] = "9";
  EXPECT_THROW(make(odd), OptionError);
  EXPECT_EQ(make(tiny)->make_batch({2, 4}).input.size(1), 4);
  try {
    make(tiny)->make_batch({2, 5});
    FAIL() << "accepted";
  } catch (const Unsupported& error) {
    EXPECT_STREQ(
        error.what(),
        "sequences of 5 tokens: this model learns 4 positions; give a shorter sequence, or "
        "more with the option positions");
  }
}

TEST(DecoderOptions, SequencesOfAWholeWindowAreRefused) {
  const auto refusal_of = [](const std::string& id, std::int64_t length) -> std::string {
    try {
      tiny_decoder(id)->make_batch({1, length});
    } catch (const Unsupported& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal_of("mistral-7b-v0.1", 4095), "accepted");
  EXPECT_EQ(
      refusal_of("mistral-7b-v0.1", 4096),
      "sequences of 4096 tokens: this model's attention looks back 4096 and needs a mask from "
      "there on, which is not built; give a shorter sequence");
  EXPECT_EQ(refusal_of("mistral-7b-v0.3", 4096), "accepted");
}

}  // namespace
}  // namespace peakbench::test
