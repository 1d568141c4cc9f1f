// Which graphs of cuDNN's graph interface the stand-in knows the workspace of: those that PyTorch
// has cudnn-frontend build for attention, on a card of compute capability 9.0, and nothing like
// them.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "cudnn/attributes.h"
#include "runtime_fixture.h"

extern "C" {
std::size_t cudnnGetVersion();
int cudnnBackendCreateDescriptor(int type, void** out);
int cudnnBackendDestroyDescriptor(void* descriptor);
int cudnnBackendFinalize(void* descriptor);
int cudnnBackendSetAttribute(void* descriptor, int attribute, int type, std::int64_t count,
                             const void* elements);
int cudnnBackendGetAttribute(void* descriptor, int attribute, int type, std::int64_t requested,
                             std::int64_t* count, void* out);
int cudnnBackendExecute(void* handle, void* plan, void* variant_pack);
}

namespace peakbench::emulator::cudnn {
namespace {

// cudnn_graph.h, beside what the stand-in reads.
constexpr int kEngine = 2, kConfig = 3, kHeuristics = 4, kPlan = 5, kGraph = 15, kTensor = 17,
              kMatmul = 18, kReduction = 21, kPagedCacheLoad = 35;
constexpr int kPointwiseX = 751, kPointwiseB = 752, kPointwiseY = 753, kPointwiseT = 758;
constexpr int kMatmulC = 1522, kMatmulRows = 1525;

void* create(int type) {
  void* made = nullptr;
  EXPECT_EQ(cudnnBackendCreateDescriptor(type, &made), 0);
  return made;
}

void put(void* into, int attribute, const std::vector<void*>& descriptors) {
  EXPECT_EQ(
      cudnnBackendSetAttribute(into, attribute, kTypeDescriptor,
                               static_cast<std::int64_t>(descriptors.size()), descriptors.data()),
      0);
}

// Batch, heads, sequence, features.
using Sizes = std::vector<std::int64_t>;
const Sizes kScores{2, 8, 128, 128}, kRows{2, 8, 128, 1}, kOne{1, 1, 1, 1};

void* tensor(const Sizes& sizes, int data_type, bool is_virtual = false) {
  void* made = create(kTensor);
  cudnnBackendSetAttribute(made, kTensorDimensions, kTypeInt64, 4, sizes.data());
  cudnnBackendSetAttribute(made, kTensorDataType, kTypeDataType, 1, &data_type);
  cudnnBackendSetAttribute(made, kTensorIsVirtual, kTypeBoolean, 1, &is_virtual);
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
  cudnnBackendSetAttribute(which, mode_attribute, mode_type, 1, &mode);
  put(made, attribute, {which});
  cudnnBackendDestroyDescriptor(which);
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
  if (narrowed)
    cudnnBackendSetAttribute(heuristics, kHeuristicsMultiprocessors, 23, 1, &multiprocessors);
  std::int64_t count = 0;
  if (by_program) {
    put(engine, kEngineGraph, {graph});
    put(config, kConfigEngine, {engine});
  } else {
    cudnnBackendGetAttribute(heuristics, kHeuristicsResults, kTypeDescriptor, 1, &count, &config);
  }
  put(plan, kPlanConfig, {config});
  cudnnBackendFinalize(plan);
  // As cudnn-frontend does, which keeps the plan alone.
  for (void* each : {graph, heuristics, config, engine}) cudnnBackendDestroyDescriptor(each);
  for (void* each : operations) cudnnBackendDestroyDescriptor(each);
  return plan;
}

std::int64_t missing() {
  const auto ledger = report();
  for (const auto& row : ledger.at("unmodelled"))
    if (row.at("name") == "cudnn engine workspace") return row.at("calls");
  return 0;
}

// Nothing where a run of the plan is entered as one whose workspace is missing.
std::optional<std::int64_t> workspace(void* plan) {
  std::int64_t bytes = -1, count = 0;
  EXPECT_EQ(cudnnBackendGetAttribute(plan, kPlanWorkspaceBytes, kTypeInt64, 1, &count, &bytes), 0);
  const auto before = missing();
  EXPECT_EQ(cudnnBackendExecute(plan, plan, plan), 0);
  if (missing() == before) return bytes;
  EXPECT_EQ(bytes, 0);
  return std::nullopt;
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

class Cudnn : public testing::Test {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() != 91900) GTEST_SKIP() << "known of cuDNN 9.19.0 alone";
  }
};

TEST_F(Cudnn, AttentionHasTheWorkspaceOfAnH200) {
  EXPECT_EQ(changed(as_it_is), 256);
  EXPECT_EQ(changed([](auto& a) { a.query = tensor({2, 8, 1, 64}, kBFloat16); }), 0) << "one query";
  EXPECT_EQ(changed([](auto& a) { a.query = tensor({2, 8, 128, 64}, kHalf); }), 256);
}

TEST_F(Cudnn, OtherTensorsAreNotKnown) {
  EXPECT_EQ(changed([](auto& a) {
              a.query = tensor({2, 8, 1, 64}, kBFloat16);
              a.keys = tensor({2, 8, 64, 1024}, kBFloat16);
            }),
            std::nullopt)
      << "one query, whose keys are split";
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

TEST_F(Cudnn, OtherOperationsAreNotKnown) {
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

TEST_F(Cudnn, EnginesThatAProgramChoseAreNotKnown) {
  Attention attention;
  attention.spell_out();
  EXPECT_EQ(workspace(plan_of(attention.operations, true)), std::nullopt) << "for half of the card";
  attention.spell_out();
  EXPECT_EQ(workspace(plan_of(attention.operations, false, true)), std::nullopt) << "by its number";
}

TEST_F(Cudnn, AFusedOperationIsOneOfThePlainOnes) {
  const auto fused = [](const std::vector<std::pair<int, void*>>& more) {
    std::vector<std::pair<int, void*>> tensors{
        {kSdpaForwardQuery, tensor({2, 8, 128, 64}, kBFloat16)},
        {kSdpaForwardKey, tensor({2, 2, 128, 64}, kBFloat16)},
        {2802, tensor({2, 2, 128, 64}, kBFloat16)},
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

TEST_F(Cudnn, GradientsOfSharedHeadsAreSummed) {
  EXPECT_EQ(workspace(plan_of(backward(true))), 256 + 2 * (2 * 8 * 128 * 64) * 2);
  EXPECT_EQ(workspace(plan_of(backward(false))), std::nullopt) << "deterministic";
  EXPECT_EQ(workspace(plan_of(backward(true, true))), std::nullopt) << "with a bias's gradient";
}

}  // namespace
}  // namespace peakbench::emulator::cudnn
