// What is said of ranks that have memory on GPUs of other ranks.
#include "reports/analysis/rank_findings.h"

#include <gtest/gtest.h>

#include "support/fake_trace.h"

namespace peakbench::analysis {
namespace {

constexpr const char* kSpaces[] = {"cuda:0", "cuda:1", "cuda:2"};
constexpr std::int64_t kBytes = 32 << 20;

// A rank on the GPU of its number, with memory on these, made by functions of two PyTorch files.
trace::FakeTrace rank_on(int rank, const std::vector<int>& cards, const char* collective = "",
                         bool loads = true) {
  trace::FakeTrace fake(kSpaces[rank]);
  std::vector<trace::StackFrame> stack{fake.frame("/home/me/train.py", "main", 7)};
  const std::string torch = "/env/lib/python3.12/site-packages/torch/";
  if (*collective != 0)
    stack.push_back(fake.frame(torch + "distributed/distributed_c10d.py", collective, 3329));
  if (loads) stack.push_back(fake.frame(torch + "serialization.py", "load", 1603));
  fake.from({fake.frame("/home/me/train.py", "main", 4)}).alloc(kBytes);
  for (const auto card : cards) fake.in(kSpaces[card]).from(stack).alloc(kBytes);
  return fake;
}

std::string said(const std::vector<trace::FakeTrace>& traces) {
  std::vector<RankTrace> ranks;
  for (const auto& fake : traces)
    ranks.push_back({static_cast<std::int32_t>(ranks.size()), &fake.trace()});
  return on_other_ranks(ranks);
}

TEST(OtherRanks, OfACheckpointThatIsLoadedWhereItWasSaved) {
  EXPECT_EQ(said({rank_on(0, {0}), rank_on(1, {0}), rank_on(2, {0})}),
            "Ranks 1 and 2 have up to 32.0 MiB on cuda:0, another rank's GPU, made at train.py:7 "
            "(main); pass map_location=\"cpu\" to torch.load.");
}

TEST(OtherRanks, OfObjectsThatAreGatheredWithTensors) {
  const auto* gather = "all_gather_object";
  EXPECT_EQ(
      said({rank_on(0, {1, 2}, gather), rank_on(1, {0, 2}, gather), rank_on(2, {0, 1}, gather)}),
      "Ranks 0, 1 and 2 have up to 32.0 MiB on cuda:0, cuda:1 and cuda:2, GPUs of other "
      "ranks, made at train.py:7 (main); all_gather_object restores each tensor on the GPU "
      "that it was on, which makes 9 CUDA contexts in place of 3; move tensors to the host "
      "first (.cpu()).");
}

TEST(OtherRanks, OfARankThatSetsItsDeviceTooLate) {
  EXPECT_EQ(said({rank_on(0, {}), rank_on(1, {0}, "", false)}),
            "Rank 1 has up to 32.0 MiB on cuda:0, another rank's GPU, made at train.py:7 (main); "
            "call torch.cuda.set_device(local_rank) first.");
}

TEST(OtherRanks, IsNothingOfRanksOnTheirOwnGpusOrOnSeveral) {
  EXPECT_EQ(said({rank_on(0, {0}), rank_on(1, {1})}), "");
  EXPECT_EQ(said({rank_on(0, {0, 2}), rank_on(1, {1})}), "") << "no rank's own";
}

}  // namespace
}  // namespace peakbench::analysis
