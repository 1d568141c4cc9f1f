// weights=PATH: what is read, and what is said when the file does not fit or is broken.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "peakbench/errors.h"
#include "plugin_under_test.h"
#include "safetensors_writer.h"

namespace peakbench::test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

class Weights : public testing::Test {
 protected:
  Weights() { std::filesystem::create_directories(folder_); }
  ~Weights() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Model> build(const std::string& weights, const std::string& id = "qwen2.5-0.5b",
                               at::ScalarType dtype = at::kFloat) const {
    const Options options = plugin_.options(id, {{"layers", "1"},
                                                 {"width", "8"},
                                                 {"mlp", "12"},
                                                 {"heads", "2"},
                                                 {"kv_heads", "1"},
                                                 {"vocabulary", "11"},
                                                 {"weights", weights}});
    return plugin_.make({id, options, at::TensorOptions(dtype)});
  }

  Tensors random_weights(const std::string& id = "qwen2.5-0.5b") const {
    Tensors tensors;
    for (const auto& item : build("", id)->module().named_parameters()) {
      tensors[item.key()] = at::randn(item.value().sizes());
    }
    return tensors;
  }

  std::string write(const Tensors& tensors) const {
    write_safetensors(path_, tensors);
    return path_;
  }

  // What is said instead of a model, after the part that every message begins with.
  std::string refusal(const std::string& path) const {
    try {
      build(path);
    } catch (const OptionError& error) {
      const std::string what = error.what(), begin = "weights=" + path + ": ";
      EXPECT_EQ(what.substr(0, begin.size()), begin);
      return what.substr(std::min(begin.size(), what.size()));
    }
    return "accepted";
  }

  PluginUnderTest plugin_{DECODER_LIBRARY, DECODER_MANIFEST};
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("peakbench-weights-" + std::to_string(::getpid()));
  std::string path_ = folder_ / "w.safetensors";
};

TEST_F(Weights, EveryParameterIsRead) {
  for (const char* id : {"qwen2.5-0.5b", "llama-3.1-8b"}) {  // tied, and with a head of its own
    const Tensors tensors = random_weights(id);
    const auto model = build(write(tensors), id);
    for (const auto& item : model->module().named_parameters()) {
      EXPECT_TRUE(at::equal(item.value(), tensors.at(item.key()))) << item.key();
      EXPECT_TRUE(item.value().requires_grad());
    }
  }
}

TEST_F(Weights, AFileFillsALayerWhenItsWeightIsNeeded) {
  const Tensors tensors = random_weights();
  std::unique_ptr<Model> model;
  {
    const nn::WeightsOnDemand scope;
    model = build(write(tensors));
  }
  std::filesystem::remove(path_);  // what was mapped stays
  for (const NamedLinear& linear : model->linears()) {
    EXPECT_TRUE(linear.layer->weight.is_meta()) << linear.path;
    linear.layer->make_weight();
  }
  for (const auto& item : model->module().named_parameters())
    EXPECT_TRUE(at::equal(item.value(), tensors.at(item.key()))) << item.key();
}

TEST_F(Weights, AnotherDtypeIsConverted) {
  const Tensors tensors = random_weights();
  const auto model = build(write(tensors), "qwen2.5-0.5b", at::kBFloat16);
  for (const auto& item : model->module().named_parameters()) {
    EXPECT_TRUE(at::equal(item.value(), tensors.at(item.key()).to(at::kBFloat16))) << item.key();
  }
}

TEST_F(Weights, WhatIsMissingExtraOrOfAnotherShapeIsSaidAtOnce) {
  Tensors tensors = random_weights();
  tensors.erase("model.norm.weight");
  tensors["model.layers.7.mlp.up_proj.weight"] = at::zeros({12, 8});
  tensors["model.layers.0.self_attn.k_proj.bias"] = at::zeros({5});
  EXPECT_EQ(refusal(write(tensors)),
            "does not fit this model. Missing: model.norm.weight. "
            "Extra: model.layers.7.mlp.up_proj.weight. "
            "Wrong shape: model.layers.0.self_attn.k_proj.bias is [5], expected [4].");
}

TEST_F(Weights, AnotherModelsFileIsSummedUp) {
  const std::string said = refusal(write(random_weights("llama-3.1-8b")));
  EXPECT_NE(said.find("Missing: model.layers.0.self_attn.q_proj.bias, "), std::string::npos)
      << said;
  EXPECT_NE(said.find("Extra: lm_head.weight."), std::string::npos) << said;
}

TEST_F(Weights, NoFile) {
  EXPECT_EQ(refusal(folder_ / "none.safetensors"), "cannot be opened (No such file or directory)");
}

TEST_F(Weights, APipeIsNotWaitedFor) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal(path_), "is not a regular file");
  EXPECT_EQ(refusal("/dev/zero"), "is not a regular file");
}

TEST_F(Weights, AFileCutShortAnywhereIsRefused) {
  write(random_weights());
  const auto whole = std::filesystem::file_size(path_);
  for (const std::uintmax_t size : {whole - 1, whole / 2, std::uintmax_t{100}, std::uintmax_t{7}}) {
    std::filesystem::resize_file(path_, size);
    EXPECT_EQ(refusal(path_).rfind("not a whole .safetensors file (", 0), 0u) << size;
  }
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(refusal(path_), "is empty or cannot be mapped");
}

TEST_F(Weights, AFileOfAnotherKindIsRefused) {
  std::ofstream(path_) << "PK\x03\x04 this is what torch.save writes, a zip file";
  EXPECT_EQ(refusal(path_), "not a whole .safetensors file (the header runs past the end)");
}

// The header is written by hand: a dtype, an offset, a shape that lie.
TEST_F(Weights, AHeaderThatLiesIsRefused) {
  const auto said_of = [&](const std::string& header) {
    const std::uint64_t size = header.size();
    std::ofstream file(path_, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&size), sizeof size) << header << "12345678";
    file.close();
    return refusal(path_);
  };
  const std::string begin = R"({"a": {"dtype": "F32", "shape": )";
  const std::string begin_of_message = "not a whole .safetensors file (";
  for (const std::string& header :
       {std::string("[]"), std::string("{"), std::string(R"({"a": 3})"),
        std::string(R"({"a": {"dtype": "F33", "shape": [2], "data_offsets": [0, 8]}})"),
        begin + R"([2], "data_offsets": [0, 9]}})", begin + R"([2], "data_offsets": [8, 0]}})",
        begin + R"([3], "data_offsets": [0, 8]}})", begin + R"([-2], "data_offsets": [0, 8]}})",
        begin + R"([-1, -2], "data_offsets": [0, 8]}})",
        begin + R"([4611686018427387905, 2], "data_offsets": [0, 8]}})",
        begin + R"([2], "data_offsets": [-8, 0]}})", begin + R"([2], "data_offsets": [0]}})"}) {
    EXPECT_EQ(said_of(header).rfind(begin_of_message, 0), 0u) << header << ": " << refusal(path_);
  }
}

}  // namespace
}  // namespace peakbench::test
