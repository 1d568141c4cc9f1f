// Workspaces of convolutions: the graph that PyTorch builds, and the estimate beside answers of
// cuDNN itself (cudnn_itself/convolutions.json), asked without a device on six cards.
#include "cudnn/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cudnn/graph.h"

namespace peakbench::emulator::cudnn {
namespace {

// cudnn_graph.h, beside what the stand-in reads.
constexpr int kConvolution = 1, kGraph = 15, kTensor = 17, kHeuristics = 4, kConfig = 3;

using Sizes = std::vector<std::int64_t>;

class Graph {
 public:
  Graph(const Sizes& input_strides, const Sizes& weight_strides, const Sizes& output_strides,
        int dtype = kBFloat16) {
    void* how = make(kConvolution);
    put(how, kConvolutionStrides, {2, 2});
    put(how, kConvolutionPaddings, {1, 1});
    put(how, kConvolutionDilations, {1, 1});
    void* operation = make(kConvolutionForward);
    hold(operation, kForwardConvolution, how);
    hold(operation, kForwardInput, tensor({8, 3, 32, 32}, input_strides, dtype));
    hold(operation, kForwardWeight, tensor({16, 3, 3, 3}, weight_strides, dtype));
    hold(operation, kForwardOutput, tensor({8, 16, 16, 16}, output_strides, dtype));
    void* graph = make(kGraph);
    hold(graph, kGraphOperations, operation);
    void *heuristics = make(kHeuristics), *config = make(kConfig);
    hold(heuristics, kHeuristicsGraph, graph);
    give_graph(heuristics, config);
    call_ = convolution_of(*graph_of(config));
  }
  ~Graph() {
    for (const auto& one : made_) destroy(one.get());
  }
  const std::optional<ConvolutionCall>& call() const { return call_; }

 private:
  void* make(int type) {
    made_.push_back(std::make_unique<int>());
    create(made_.back().get(), type);
    return made_.back().get();
  }
  static void put(void* into, int attribute, const Sizes& sizes) {
    set(into, attribute, kTypeInt64, static_cast<std::int64_t>(sizes.size()), sizes.data());
  }
  static void hold(void* into, int attribute, void* what) {
    set(into, attribute, kTypeDescriptor, 1, &what);
  }
  void* tensor(const Sizes& sizes, const Sizes& strides, int dtype) {
    void* made = make(kTensor);
    put(made, kTensorDimensions, sizes);
    put(made, kTensorStrides, strides);
    set(made, kTensorDataType, kTypeDataType, 1, &dtype);
    return made;
  }

  std::vector<std::unique_ptr<int>> made_;
  std::optional<ConvolutionCall> call_;
};

const Sizes kInputFirst{3072, 1024, 32, 1}, kWeightFirst{27, 9, 3, 1},
    kOutputFirst{4096, 256, 16, 1}, kInputLast{3072, 1, 96, 3}, kWeightLast{27, 1, 9, 3},
    kOutputLast{4096, 1, 256, 16};

TEST(Convolution, IsReadFromPyTorchsGraph) {
  const auto call = Graph(kInputFirst, kWeightFirst, kOutputFirst).call();
  ASSERT_TRUE(call);
  EXPECT_EQ(call->pass, ConvolutionPass::forward);
  const Convolution expected{.input = {8, 3, 32, 32},
                             .weight = {16, 3, 3, 3},
                             .stride = {2, 2},
                             .padding = {1, 1},
                             .dilation = {1, 1},
                             .dtype = "bfloat16"};
  EXPECT_EQ(call->convolution, expected);
}

TEST(Convolution, HasOneLayout) {
  EXPECT_TRUE(Graph(kInputLast, kWeightLast, kOutputLast).call()->convolution.channels_last);
  EXPECT_FALSE(Graph(kInputLast, kWeightFirst, kOutputLast).call());
  EXPECT_FALSE(Graph({6144, 2048, 64, 2}, kWeightFirst, kOutputFirst).call());
}

TEST(Convolution, IsOfATypeThatIsKnown) {
  constexpr int kDouble = 1;
  EXPECT_FALSE(Graph(kInputFirst, kWeightFirst, kOutputFirst, kDouble).call());
}

class Answers : public testing::Test {
 protected:
  // visit(convolution, pass, estimate, what cuDNN said)
  template <typename Visit>
  static void each(Visit&& visit) {
    std::ifstream file(PEAKBENCH_CUDNN_ANSWERS);
    for (const auto& of_card : nlohmann::json::parse(file)) {
      const int major = of_card.at("compute_capability_major");
      for (const auto& list : read_convolutions(of_card.at("workspaces")))
        for (const auto& [convolution, bytes] : list.bytes)
          for (int pass = 0; pass < kConvolutionPasses; ++pass) {
            const auto which = static_cast<ConvolutionPass>(pass);
            visit(convolution, which,
                  *estimate(convolution, which, by_tensor_cores(convolution, major)),
                  *bytes.at(pass), of_card.at("card").get<std::string>());
          }
    }
  }
};

TEST_F(Answers, AreMostlyWithinTheEstimatesRange) {
  std::map<std::string, int> all, above;
  each([&](const Convolution&, ConvolutionPass, const WorkspaceEstimate& estimate,
           std::uint64_t bytes, const std::string& card) {
    ++all[card];
    above[card] += bytes > estimate.most_bytes;
    EXPECT_LE(estimate.bytes, estimate.most_bytes);
  });
  EXPECT_EQ(all.size(), 6U);
  for (const auto& [card, answers] : all) EXPECT_LE(above[card], 1 + answers / 100) << card;
}

// By tensor cores, channels first: all but the last few bytes are copies in another layout.
TEST_F(Answers, OfBackwardPassesInHalfPrecisionAreEstimatedWell) {
  double told = 0, wrong = 0;
  each([&](const Convolution& convolution, ConvolutionPass pass, const WorkspaceEstimate& estimate,
           std::uint64_t bytes, const std::string&) {
    if (convolution.channels_last || convolution.dtype == "float32" ||
        pass == ConvolutionPass::forward)
      return;
    told += static_cast<double>(bytes);
    wrong += std::abs(static_cast<double>(bytes) - static_cast<double>(estimate.bytes));
  });
  EXPECT_GT(told, 1e9);
  EXPECT_LT(wrong / told, 0.1);
}

}  // namespace
}  // namespace peakbench::emulator::cudnn
