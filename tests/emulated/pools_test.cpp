// Memory pools (cudaMallocAsync) as a program meets them: what is in use of a pool, what it has
// reserved, and when it gives memory back to the card.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime_fixture.h"

namespace peakbench::emulator {
namespace {

constexpr std::size_t kStep = 32 * kMiB;  // seen by others: cupy/cupy#5177

cudaMemPool_t pool_of_device(int device) {
  cudaMemPool_t pool = nullptr;
  EXPECT_EQ(cudaDeviceGetDefaultMemPool(&pool, device), cudaSuccess);
  return pool;
}

std::uint64_t figure(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  std::uint64_t value = 0;
  EXPECT_EQ(cudaMemPoolGetAttribute(pool, attribute, &value), cudaSuccess);
  return value;
}

std::uint64_t used(cudaMemPool_t pool) { return figure(pool, cudaMemPoolAttrUsedMemCurrent); }
std::uint64_t reserved(cudaMemPool_t pool) {
  return figure(pool, cudaMemPoolAttrReservedMemCurrent);
}

void set(cudaMemPool_t pool, cudaMemPoolAttr attribute, std::uint64_t value) {
  EXPECT_EQ(cudaMemPoolSetAttribute(pool, attribute, &value), cudaSuccess);
}

void* take(std::size_t bytes) {
  void* at = nullptr;
  EXPECT_EQ(cudaMallocAsync(&at, bytes, nullptr), cudaSuccess);
  return at;
}

class Pools : public Runtime {
 protected:
  void SetUp() override {
    Runtime::SetUp();
    set(pool_, cudaMemPoolAttrReservedMemHigh, 0);
    set(pool_, cudaMemPoolAttrUsedMemHigh, 0);
  }
  void TearDown() override {
    set(pool_, cudaMemPoolAttrReleaseThreshold, 0);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    Runtime::TearDown();
  }

  cudaMemPool_t pool_ = pool_of_device(0);
};

TEST_F(Pools, SmallPiecesShareMemory) {
  std::vector<void*> pieces;
  for (int i = 0; i < 1000; ++i) pieces.push_back(take(12));
  EXPECT_EQ(used(pool_), 1000u * 512);
  EXPECT_EQ(reserved(pool_), kStep);
  EXPECT_EQ(free_bytes(), kTotal - kStep);
  for (void* piece : pieces) EXPECT_EQ(cudaFreeAsync(piece, nullptr), cudaSuccess);
  EXPECT_EQ(used(pool_), 0u);
  EXPECT_EQ(figure(pool_, cudaMemPoolAttrUsedMemHigh), 1000u * 512);
  EXPECT_EQ(device(0).at("peak_pool_bytes"), 1000u * 512);
}

TEST_F(Pools, WhatIsFreeGoesBackWhenSomebodyWaits) {
  void* piece = take(kMiB);
  cudaFreeAsync(piece, nullptr);
  EXPECT_EQ(reserved(pool_), kStep) << "until then it is kept";
  EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(reserved(pool_), 0u);
  EXPECT_EQ(figure(pool_, cudaMemPoolAttrReservedMemHigh), kStep);
  EXPECT_EQ(free_bytes(), kTotal);
}

TEST_F(Pools, AThresholdKeepsMemoryUntilItIsTrimmed) {
  set(pool_, cudaMemPoolAttrReleaseThreshold, ~std::uint64_t{0});
  EXPECT_EQ(figure(pool_, cudaMemPoolAttrReleaseThreshold), ~std::uint64_t{0});
  void* kept = take(kMiB);
  void* piece = take(kStep);
  EXPECT_EQ(reserved(pool_), 2 * kStep);
  cudaFreeAsync(piece, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(reserved(pool_), 2 * kStep);
  EXPECT_EQ(cudaMemPoolTrimTo(pool_, 0), cudaSuccess);
  EXPECT_EQ(reserved(pool_), kStep) << "one is in use";
  cudaFreeAsync(kept, nullptr);
}

TEST_F(Pools, FreedPiecesJoin) {
  void *a = take(kMiB), *b = take(kMiB), *c = take(kMiB);
  for (void* piece : {a, c, b}) cudaFreeAsync(piece, nullptr);
  void* whole = take(kStep);
  EXPECT_EQ(whole, a);
  EXPECT_EQ(reserved(pool_), kStep);
  EXPECT_EQ(cudaFree(whole), cudaSuccess) << "this frees pieces, too";
}

TEST_F(Pools, PeaksAreResetToWhatIsCurrent) {
  void *a = take(kMiB), *b = take(kMiB);
  cudaFreeAsync(b, nullptr);
  set(pool_, cudaMemPoolAttrUsedMemHigh, 0);
  EXPECT_EQ(figure(pool_, cudaMemPoolAttrUsedMemHigh), kMiB);
  std::uint64_t other = 5;
  EXPECT_EQ(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrUsedMemHigh, &other),
            cudaErrorInvalidValue);
  cudaFreeAsync(a, nullptr);
}

TEST_F(Pools, NearTheEndOfTheCardStepsAreSmaller) {
  void* taken = nullptr;
  ASSERT_EQ(cudaMalloc(&taken, kTotal - 4 * kMiB), cudaSuccess);
  const auto refused = device(0).at("refused_allocations").get<int>();
  void* piece = take(3 * kMiB);
  EXPECT_EQ(free_bytes(), 0u);
  EXPECT_EQ(device(0).at("refused_allocations").get<int>(), refused) << "the program was given it";
  void* more = nullptr;
  EXPECT_EQ(cudaMallocAsync(&more, 2 * kMiB, nullptr), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(device(0).at("refused_allocations").get<int>(), refused + 1);
  EXPECT_EQ(device(0).at("last_refused_bytes"), 2 * kMiB);
  cudaFreeAsync(piece, nullptr);
  cudaFree(taken);
}

TEST_F(Pools, FreeMemoryOfOtherSizesMakesRoom) {
  set(pool_, cudaMemPoolAttrReleaseThreshold, ~std::uint64_t{0});
  cudaFreeAsync(take(kMiB), nullptr);
  void* whole = take(kTotal);
  EXPECT_EQ(reserved(pool_), kTotal);
  cudaFreeAsync(whole, nullptr);
}

TEST_F(Pools, PiecesKeepTheirOwnBytes) {
  auto* first = static_cast<int*>(take(sizeof(int)));
  auto* second = static_cast<int*>(take(sizeof(int)));
  const int one = 1, two = 2;
  cudaMemcpy(first, &one, sizeof one, cudaMemcpyHostToDevice);
  cudaMemcpy(second, &two, sizeof two, cudaMemcpyHostToDevice);
  int read = 0;
  cudaMemcpy(&read, first, sizeof read, cudaMemcpyDeviceToHost);
  EXPECT_EQ(read, 1);
  cudaFreeAsync(first, nullptr);
  auto* again = static_cast<int*>(take(sizeof(int)));
  ASSERT_EQ(again, first);
  cudaMemcpy(&read, again, sizeof read, cudaMemcpyDeviceToHost);
  EXPECT_EQ(read, 0) << "what the earlier piece held is gone";
  EXPECT_EQ(cudaMemset(second, 0, 1024), cudaErrorInvalidValue) << "past its end";
  cudaGetLastError();
  cudaFreeAsync(again, nullptr);
  cudaFreeAsync(second, nullptr);
}

TEST_F(Pools, PoolsOfTheProgramAreApart) {
  cudaMemPoolProps props{};
  props.allocType = cudaMemAllocationTypePinned;
  props.location = {cudaMemLocationTypeDevice, 0};
  props.maxSize = kStep;
  cudaMemPool_t own = nullptr;
  ASSERT_EQ(cudaMemPoolCreate(&own, &props), cudaSuccess);
  void *piece = nullptr, *more = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&piece, kMiB, own, nullptr), cudaSuccess);
  EXPECT_EQ(used(own), kMiB);
  EXPECT_EQ(used(pool_), 0u);
  EXPECT_EQ(cudaMallocFromPoolAsync(&more, kStep, own, nullptr), cudaErrorMemoryAllocation)
      << "past its most";
  cudaGetLastError();
  ASSERT_EQ(cudaDeviceSetMemPool(0, own), cudaSuccess);
  void* third = take(kMiB);
  EXPECT_EQ(used(own), 2 * kMiB);
  cudaFreeAsync(third, nullptr);
  EXPECT_EQ(cudaMemPoolDestroy(own), cudaSuccess);
  EXPECT_EQ(free_bytes(), kTotal - kStep) << "a piece is still in use";
  EXPECT_EQ(cudaFreeAsync(piece, nullptr), cudaSuccess);
  EXPECT_EQ(free_bytes(), kTotal);
  cudaMemPool_t current = nullptr;
  EXPECT_EQ(cudaDeviceGetMemPool(&current, 0), cudaSuccess);
  EXPECT_EQ(current, pool_);
  EXPECT_EQ(cudaMemPoolDestroy(pool_), cudaErrorInvalidValue) << "a device's own stays";
  cudaGetLastError();
}

TEST_F(Pools, EachDeviceHasItsOwn) {
  cudaSetDevice(1);
  void* piece = take(kMiB);
  EXPECT_EQ(used(pool_of_device(1)), kMiB);
  EXPECT_EQ(used(pool_), 0u);
  cudaFreeAsync(piece, nullptr);
  cudaDeviceSynchronize();
  cudaSetDevice(0);
}

}  // namespace
}  // namespace peakbench::emulator
