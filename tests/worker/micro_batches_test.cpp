// Splitting a batch: sizes, weights, and what cannot be split.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <stdexcept>

#include "peakbench/errors.h"
#include "worker/losses.h"

namespace peakbench::worker {
namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;

TEST(MicroBatches, SizesDifferByOneAtMost) {
  EXPECT_THAT(micro_batch_sizes(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(micro_batch_sizes(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(micro_batch_sizes(8, 3), ElementsAre(3, 3, 2));
  EXPECT_THAT(micro_batch_sizes(4, 4), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(micro_batch_sizes(4, 1), ElementsAre(4));
}

TEST(MicroBatches, WhatCannotBeSplitIsSaid) {
  for (const std::int64_t parts : {0, -1, 5}) {
    EXPECT_THAT([&] { micro_batch_sizes(4, parts); },
                ThrowsMessage<Unsupported>("a batch of 4 cannot be split into " +
                                           std::to_string(parts) + " micro-batches"));
  }
}

TEST(MicroBatches, EverySampleIsInOnePartAndWeighsTheSame) {
  const Batch batch{at::arange(7).view({7, 1}), at::arange(7)};
  const auto parts = split(batch, 3);
  ASSERT_EQ(parts.size(), 3u);
  std::vector<at::Tensor> inputs, targets;
  std::int64_t samples = 0;
  for (const MicroBatch& part : parts) {
    inputs.push_back(part.batch.input);
    targets.push_back(part.batch.target);
    EXPECT_EQ(part.samples, part.batch.input.size(0));
    samples += part.samples;
  }
  EXPECT_TRUE(at::cat(inputs).equal(batch.input));
  EXPECT_TRUE(at::cat(targets).equal(batch.target));
  EXPECT_EQ(samples, 7);
}

TEST(MicroBatches, TensorsByNameAreSplitUnlessTheyAreOfNoSample) {
  Batch batch{at::arange(5), {}};
  batch.named.push_back({"mask", at::arange(10).view({5, 2})});
  batch.named.push_back({"positions", at::arange(3), /*per_sample=*/false});
  const auto parts = split(batch, 2);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_TRUE(parts[0].batch.at("mask").equal(batch.at("mask").narrow(0, 0, 3)));
  EXPECT_TRUE(parts[1].batch.at("mask").equal(batch.at("mask").narrow(0, 3, 2)));
  EXPECT_TRUE(parts[1].batch.at("positions").is_same(batch.at("positions")));
  EXPECT_THAT([&] { static_cast<void>(batch.at("masks")); },
              ThrowsMessage<std::out_of_range>(
                  "the batch has no tensor \"masks\"; it has mask, positions"));
}

TEST(MicroBatches, ABatchWithoutTargetStaysWithout) {
  const auto parts = split({at::arange(4).view({4, 1}), {}}, 2);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(parts[1].batch.target.defined());
}

TEST(MicroBatches, OnePartIsTheBatchItself) {
  const Batch batch{at::arange(4), {}};
  const auto parts = split(batch, 1);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(parts[0].batch.input.is_same(batch.input));
  EXPECT_EQ(parts[0].samples, 4);
}

// Samples' losses 0, 1, ..., n - 1: the parts' losses must add up to the batch's.
double loss_of_parts(std::int64_t samples, std::int64_t count, LossReduction reduction) {
  const auto parts = split({at::arange(samples, at::kDouble), {}}, count);
  double total = 0;
  for (const MicroBatch& part : parts) {
    const at::Tensor& losses = part.batch.input;
    const at::Tensor loss = reduction == LossReduction::kMean ? losses.mean() : losses.sum();
    total += weighted(loss, part, parts, reduction).item<double>();
  }
  return total;
}

TEST(MicroBatches, LossesAddUpToTheBatchs) {
  for (const std::int64_t count : {1, 2, 3, 4, 7}) {
    EXPECT_DOUBLE_EQ(loss_of_parts(7, count, LossReduction::kMean), 3) << count;
    EXPECT_DOUBLE_EQ(loss_of_parts(7, count, LossReduction::kSum), 21) << count;
    EXPECT_DOUBLE_EQ(loss_of_parts(8, count, LossReduction::kMean), 3.5) << count;
  }
}

// Labels of which -1 counts for nothing: the mean over the others, whatever part has how many.
TEST(MicroBatches, AMeanOverTokensIsWeightedByThem) {
  const at::Tensor labels = at::tensor({0, -1, -1, 1, 2, -1, 3, 4, 5, 6, 7, 8}).view({6, 2});
  const Batch batch{labels.to(at::kDouble), labels};
  OutputHead head;
  head.shifts_labels = false;
  head.ignore_index = -1;
  const auto mean = [](const Batch& one) {
    return one.input.masked_select(one.target.ne(-1)).mean();
  };
  for (const std::int64_t count : {2, 3, 6}) {
    auto parts = split(batch, count);
    share_by_tokens(parts, batch, head);
    double total = 0, unweighted = 0;
    for (const MicroBatch& part : parts) {
      total += weighted(mean(part.batch), part, parts, LossReduction::kMean).item<double>();
      unweighted += mean(part.batch).item<double>() / static_cast<double>(count);
    }
    EXPECT_NEAR(total, 4, 1e-6) << count;  // (0 + ... + 8) / 9; shares are in fp32
    EXPECT_GT(std::abs(unweighted - 4), 0.1) << count;
  }
}

}  // namespace
}  // namespace peakbench::worker
