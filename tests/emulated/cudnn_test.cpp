// Which graphs of cuDNN's graph interface the stand-in knows the workspace of: those that PyTorch
// has cudnn-frontend build for attention, on a card of compute capability 9.0, and nothing like
// them.
#include "cudnn/cudnn.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cudnn/attention.h"
#include "in_emulation.h"

namespace peakbench::emulator::cudnn {

std::size_t version() { return 91900; }

namespace {

// cudnn_graph.h, beside what the stand-in reads.
constexpr int kEngine = 2, kConfig = 3, kHeuristics = 4, kPlan = 5, kGraph = 15, kTensor = 17,
              kMatmul = 18, kReduction = 21, kPagedCacheLoad = 35;
constexpr int kPointwiseX = 751, kPointwiseB = 752, kPointwiseY = 753;
constexpr int kMatmulC = 1522, kMatmulRows = 1525;

void* create(int type) {
  static std::vector<std::unique_ptr<int>> handles;
  void* made = handles.emplace_back(std::make_unique<int>()).get();
  cudnn::create(made, type);
  return made;
}

void put(void* into, int attribute, const std::vector<void*>& descriptors) {
  set(into, attribute, kTypeDescriptor, static_cast<std::int64_t>(descriptors.size()),
      descriptors.data());
}

// Batch, heads, sequence, features.
using Sizes = std::vector<std::int64_t>;
const Sizes kScores{2, 8, 128, 128}, kRows{2, 8, 128, 1}, kOne{1, 1, 1, 1};

void* tensor(const Sizes& sizes, int data_type, bool is_virtual = false) {
  void* made = create(kTensor);
  set(made, kTensorDimensions, kTypeInt64, 4, sizes.data());
  set(made, kTensorDataType, kTypeDataType, 1, &data_type);
  set(made, kTensorIsVirtual, kTypeBoolean, 1, &is_virtual);
  return made;
}
void* within(const Sizes& sizes = kScores) { return tensor(sizes, kFloat, true); }
void* one() { return tensor(kOne, kFloat); }

void* operation(int type, const std::vector<std::pair<int, void*>>& tensors) {
  void* made = create(type);
  for (const auto& [attribute, each] : tensors) put(made, attribute, {each});
  return made;
}

void* with_mode(void* made, int attribute, int type, int mode_attribute, int mode_type, int mode) {
  void* which = create(type);
  set(which, mode_attribute, mode_type, 1, &mode);
  put(made, attribute, {which});
  destroy(which);
  return made;
}

void* pointwise(int mode, void* b = nullptr, void* y = nullptr) {
  void* made =
      operation(kPointwiseOperation, {{kPointwiseX, within()}, {kPointwiseY, y ? y : within()}});
  if (b) put(made, kPointwiseB, {b});
  return with_mode(made, kPointwiseDescriptor, 0, kPointwiseMode, kTypePointwiseMode, mode);
}

void* reduction(int mode, void* x = nullptr, void* y = nullptr) {
  void* made = operation(kReductionOperation,
                         {{kReductionX, x ? x : within()}, {kReductionY, y ? y : within(kRows)}});
  return with_mode(made, kReductionDescriptor, kReduction, kReductionOperator,
                   kTypeReductionOperator, mode);
}

void* matmul(void* a, void* b, void* c) {
  void* made = operation(kMatmulOperation, {{kMatmulA, a}, {kMatmulB, b}, {kMatmulC, c}});
  put(made, kMatmulDescriptor, {create(kMatmul)});
  return made;
}

// softmax(query x keys * scale) x values, with the statistics that training keeps.
struct Attention {
  void* query = tensor({2, 8, 128, 64}, kBFloat16);
  void* keys = tensor({2, 8, 64, 128}, kBFloat16);
  void* out = tensor({2, 8, 128, 64}, kBFloat16);
  std::vector<void*> operations;

  void spell_out() {
    operations = {matmul(query, keys, within()),
                  pointwise(kMultiply, one()),
                  reduction(kMaximum),
                  pointwise(kSubtract, within(kRows)),
                  pointwise(kExponential),
                  reduction(kSum),
                  pointwise(kLogarithm),
                  pointwise(kAdd, within(kRows), tensor(kRows, kFloat)),
                  pointwise(kDivide, within(kRows)),
                  matmul(within(), tensor({2, 8, 128, 64}, kBFloat16), out)};
  }
};

// The plan of the engine that the heuristics give for a graph of these operations.
void* plan_of(const std::vector<void*>& operations, bool narrowed = false,
              bool by_program = false) {
  void *graph = create(kGraph), *heuristics = create(kHeuristics), *config = create(kConfig),
       *plan = create(kPlan), *engine = create(kEngine);
  put(graph, kGraphOperations, operations);
  put(heuristics, kHeuristicsGraph, {graph});
  const std::int32_t multiprocessors = 66;
  if (narrowed) set(heuristics, kHeuristicsMultiprocessors, 23, 1, &multiprocessors);
  if (by_program) {
    put(engine, kEngineGraph, {graph});
    put(config, kConfigEngine, {engine});
  } else {
    give_graph(heuristics, config);
  }
  put(plan, kPlanConfig, {config});
  // As cudnn-frontend does, which keeps the plan alone.
  for (void* each : {graph, heuristics, config, engine}) destroy(each);
  for (void* each : operations) destroy(each);
  return plan;
}

std::optional<std::int64_t> workspace(void* plan) {
  const auto graph = graph_of(plan);
  return graph ? attention_workspace(*graph) : std::nullopt;
}

std::optional<std::int64_t> changed(
    const std::function<void(Attention&)>& before,
    const std::function<void(Attention&)>& after = [](auto&) {}) {
  Attention attention;
  before(attention);
  attention.spell_out();
  after(attention);
  return workspace(plan_of(attention.operations));
}
void as_it_is(Attention&) {}

TEST(Cudnn, AttentionHasTheWorkspaceOfAnH200) {
  EXPECT_EQ(changed(as_it_is), 256);
  EXPECT_EQ(changed([](auto& a) { a.query = tensor({2, 8, 128, 64}, kHalf); }), 256);
}

TEST(Cudnn, OtherTensorsAreNotKnown) {
  EXPECT_EQ(changed([](auto& a) {
              a.query = tensor({2, 8, 1, 64}, kBFloat16);
            }),
            std::nullopt)
      << "one query, whose keys may be split";
  EXPECT_EQ(changed([](auto& a) {
              a.keys = tensor({2, 2, 64, 128}, kBFloat16);
            }),
            std::nullopt)
      << "values have more heads than keys";
  EXPECT_EQ(changed([](auto& a) { a.query = tensor({2, 8, 128, 64}, kFloat); }), std::nullopt);
  EXPECT_EQ(changed([](auto& a) { a.query = tensor({2, 8, 128, 64}, 12); }), std::nullopt) << "fp8";
  EXPECT_EQ(changed([](auto& a) {
              put(a.query, kTensorRaggedOffset, {tensor({3, 1, 1, 1}, 4)});
            }),
            std::nullopt)
      << "sequences of many lengths in one tensor";
  EXPECT_EQ(changed([](auto& a) { a.out = within(); }), std::nullopt) << "more follows";
  EXPECT_EQ(changed([](auto& a) { a.query = create(kTensor); }), std::nullopt) << "nothing in it";
}

TEST(Cudnn, OtherOperationsAreNotKnown) {
  EXPECT_EQ(changed(as_it_is,
                    [](auto& a) {
                      put(a.operations[0], kMatmulRows, {tensor({2, 1, 1, 1}, 4)});
                    }),
            std::nullopt)
      << "padded";
  EXPECT_EQ(
      changed(as_it_is,
              [](auto& a) { a.operations.insert(a.operations.begin(), create(kPagedCacheLoad)); }),
      std::nullopt)
      << "paged";
  EXPECT_EQ(changed(as_it_is, [](auto& a) { a.operations.erase(a.operations.begin() + 1); }),
            std::nullopt)
      << "no scale";
  EXPECT_EQ(changed(as_it_is, [](auto& a) { a.operations[2] = reduction(kSum); }), std::nullopt)
      << "two products and two sums";
  EXPECT_EQ(changed(as_it_is, [](auto& a) { a.operations.push_back(pointwise(kAdd, within())); }),
            std::nullopt);
  EXPECT_EQ(changed(as_it_is, [](auto& a) { a.operations.push_back(&a); }), std::nullopt)
      << "none of its descriptors";
  EXPECT_EQ(changed(as_it_is, [](auto& a) { a.operations.front() = &a; }), std::nullopt);
  EXPECT_EQ(changed(as_it_is, [](auto& a) { a.operations.clear(); }), std::nullopt);
}

TEST(Cudnn, EnginesThatAProgramChoseAreNotKnown) {
  Attention attention;
  attention.spell_out();
  EXPECT_EQ(workspace(plan_of(attention.operations, true)), std::nullopt) << "for half of the card";
  attention.spell_out();
  EXPECT_EQ(workspace(plan_of(attention.operations, false, true)), std::nullopt) << "by its number";
}

TEST(Cudnn, AFusedOperationIsOneOfThePlainOnes) {
  const auto fused = [](const std::vector<std::pair<int, void*>>& more) {
    std::vector<std::pair<int, void*>> tensors{
        {kSdpaForwardQuery, tensor({2, 8, 128, 64}, kBFloat16)},
        {kSdpaForwardKey, tensor({2, 2, 128, 64}, kBFloat16)},
        {kSdpaForwardValue, tensor({2, 2, 128, 64}, kBFloat16)},
        {2803, tensor({2, 8, 128, 64}, kBFloat16)},
        {2805, one()}};
    tensors.insert(tensors.end(), more.begin(), more.end());
    return workspace(plan_of({operation(kSdpaForwardOperation, tensors)}));
  };
  EXPECT_EQ(fused({}), 256);
  EXPECT_EQ(fused({{2804, tensor(kRows, kFloat)}}), 256) << "with statistics";
  EXPECT_EQ(fused({{2806, tensor(kScores, 6)}}), std::nullopt) << "a mask of blocks";
  EXPECT_EQ(fused({{2809, tensor({2, 1, 1, 1}, 4)}}), std::nullopt) << "lengths";
}

// The way back, with two heads of keys and values for eight of queries; `accumulated`: the gradient
// of the queries is added up in 32 bits, which cudnn-frontend leaves out where it must be the same
// in every run or where a bias has a gradient.
std::vector<void*> backward(bool accumulated, bool bias_gradient = false) {
  const Sizes rows{2, 8, 128, 64}, shared{2, 2, 128, 64};
  const auto input = [](const Sizes& sizes) { return tensor(sizes, kBFloat16); };
  const auto reshape = [](void* x) {
    return operation(kReshapeOperation, {{2200, x}, {2201, within()}});
  };
  void* product = pointwise(kMultiply, input(rows));
  put(product, kPointwiseX, {input(rows)});
  std::vector<void*> operations{product,
                                reduction(kSum),
                                pointwise(kMultiply, one(), tensor(kRows, kFloat)),
                                matmul(input(rows), input({2, 2, 64, 128}), within()),
                                pointwise(kMultiply, one()),
                                pointwise(kSubtract, tensor(kRows, kFloat)),
                                pointwise(kExponential),
                                reshape(within()),
                                matmul(within(), input(rows), within(rows)),
                                reduction(kSum, within(rows), input(shared)),
                                matmul(input(rows), input({2, 2, 64, 128}), within()),
                                pointwise(kSubtract, tensor(kRows, kFloat)),
                                pointwise(kMultiply, within()),
                                pointwise(kMultiply, one()),
                                reshape(within()),
                                matmul(within(), input(rows), within(rows)),
                                reduction(kSum, within(rows), input(shared)),
                                reshape(input({2, 2, 64, 128}))};
  if (bias_gradient)
    operations.insert(operations.begin() + 13, reduction(kSum, within(), input({1, 8, 128, 128})));
  void* gradient = accumulated ? tensor(rows, kFloat) : input(rows);
  operations.push_back(matmul(within(), within(), gradient));
  if (!accumulated) return operations;
  void* converted = pointwise(kIdentity, nullptr, input(rows));
  put(converted, kPointwiseX, {gradient});
  operations.push_back(converted);
  return operations;
}

TEST(Cudnn, GradientsOfSharedHeadsAreSummed) {
  EXPECT_EQ(workspace(plan_of(backward(true))), 256 + 2 * (2 * 8 * 128 * 64) * 2);
  EXPECT_EQ(workspace(plan_of(backward(false))), std::nullopt) << "deterministic";
  EXPECT_EQ(workspace(plan_of(backward(true, true))), std::nullopt) << "with a bias's gradient";
}

}  // namespace
}  // namespace peakbench::emulator::cudnn

int main(int count, char** words) {
  peakbench::emulator::start_again_on("h200-141gb", words);
  testing::InitGoogleTest(&count, words);
  return RUN_ALL_TESTS();
}
