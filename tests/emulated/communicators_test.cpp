// NCCL's communicators between threads and between processes, held against what the same calls
// would give: each rank says what it got, and a closed form says what that is.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/card.h"
#include "core/shared_cards.h"
#include "in_emulation.h"
#include "runtime_fixture.h"

extern "C" {
struct NcclId {
  char bytes[128];
};
int ncclGetUniqueId(NcclId* out);
int ncclCommInitRank(void** out, int ranks, NcclId id, int rank);
int ncclCommInitAll(void** out, int devices, const int* list);
int ncclCommSplit(void* parent, int color, int key, void** out, void* config);
int ncclCommCount(void* communicator, int* out);
int ncclCommUserRank(void* communicator, int* out);
int ncclCommDestroy(void* communicator);
int ncclCommGetAsyncError(void* communicator, int* out);
const char* ncclGetLastError(void* communicator);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllGather(const void*, void*, std::size_t, int, void*, cudaStream_t);
int ncclAllReduce(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
int ncclBroadcast(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
int ncclReduce(const void*, void*, std::size_t, int, int, int, void*, cudaStream_t);
int ncclReduceScatter(const void*, void*, std::size_t, int, int, void*, cudaStream_t);
int ncclAlltoAll(const void*, void*, std::size_t, int, void*, cudaStream_t);
int ncclSend(const void*, std::size_t, int, int, void*, cudaStream_t);
int ncclRecv(void*, std::size_t, int, int, void*, cudaStream_t);
}

namespace peakbench::emulator {
namespace {

constexpr int kInt64 = 4, kFloat = 7, kBfloat = 9;
constexpr int kSum = 0, kProduct = 1, kMax = 2, kMin = 3, kAverage = 4;
constexpr int kInvalidArgument = 4, kInvalidUsage = 5, kRemoteError = 6;
constexpr std::size_t kMany = 64;

using Numbers = std::vector<std::int64_t>;

// A buffer of the card.
class Buffer {
 public:
  explicit Buffer(const Numbers& numbers) : count_(numbers.size()) {
    EXPECT_EQ(cudaMalloc(&at_, bytes()), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(at_, numbers.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { cudaFree(at_); }
  std::int64_t* at() const { return static_cast<std::int64_t*>(at_); }
  Numbers numbers() const {
    Numbers out(count_);
    EXPECT_EQ(cudaMemcpy(out.data(), at_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return out;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(std::int64_t); }
  std::size_t count_;
  void* at_ = nullptr;
};

// At random, so that ranks come in every order.
void dawdle(int rank) {
  thread_local std::mt19937 random(std::random_device{}() + static_cast<unsigned>(rank));
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
}

struct Rank {
  void* communicator;
  int rank, ranks;
};

void reduces(const Rank& self) {
  const std::int64_t mine = self.rank + 2;
  Numbers want(5);
  want[kProduct] = 1, want[kMin] = 2, want[kMax] = self.ranks + 1;
  for (int r = 0; r < self.ranks; ++r) want[kSum] += r + 2, want[kProduct] *= r + 2;
  want[kAverage] = want[kSum] / self.ranks;
  for (const int reduction : {kSum, kProduct, kMax, kMin, kAverage}) {
    dawdle(self.rank);
    Buffer from({mine, -mine}), to({0, 0});
    ASSERT_EQ(ncclAllReduce(from.at(), to.at(), 2, kInt64, reduction, self.communicator, nullptr),
              0);
    EXPECT_EQ(to.numbers()[0], want[static_cast<std::size_t>(reduction)]) << reduction;
  }
  Buffer from({mine}), to({-1});
  ASSERT_EQ(ncclReduce(from.at(), to.at(), 1, kInt64, kSum, 0, self.communicator, nullptr), 0);
  EXPECT_EQ(to.numbers()[0], self.rank == 0 ? want[kSum] : -1) << "the root alone";
}

void moves(const Rank& self) {
  Numbers mine, gathered, swapped, summed;
  for (int r = 0; r < self.ranks; ++r) {
    mine.push_back(100 * self.rank + r);
    gathered.push_back(100 * r);
    swapped.push_back(100 * r + self.rank);
  }
  const Numbers nothing(mine.size(), -1);
  Buffer from(mine), all(nothing), scattered({0}), exchanged(nothing), root({self.rank});
  dawdle(self.rank);
  ASSERT_EQ(ncclAllGather(from.at(), all.at(), 1, kInt64, self.communicator, nullptr), 0);
  EXPECT_EQ(all.numbers(), gathered);
  ASSERT_EQ(ncclAlltoAll(from.at(), exchanged.at(), 1, kInt64, self.communicator, nullptr), 0);
  EXPECT_EQ(exchanged.numbers(), swapped);
  ASSERT_EQ(
      ncclReduceScatter(from.at(), scattered.at(), 1, kInt64, kSum, self.communicator, nullptr), 0);
  EXPECT_EQ(scattered.numbers()[0],
            100 * self.ranks * (self.ranks - 1) / 2 + self.ranks * self.rank);
  ASSERT_EQ(
      ncclBroadcast(root.at(), root.at(), 1, kInt64, self.ranks - 1, self.communicator, nullptr),
      0);
  EXPECT_EQ(root.numbers()[0], self.ranks - 1);
}

void sends_around(const Rank& self) {
  const int next = (self.rank + 1) % self.ranks, before = (self.rank + self.ranks - 1) % self.ranks;
  Buffer mine({7 * self.rank}), got({-1});
  // Received first, as only a group may.
  ASSERT_EQ(ncclGroupStart(), 0);
  ASSERT_EQ(ncclRecv(got.at(), 1, kInt64, before, self.communicator, nullptr), 0);
  dawdle(self.rank);
  ASSERT_EQ(ncclSend(mine.at(), 1, kInt64, next, self.communicator, nullptr), 0);
  ASSERT_EQ(ncclGroupEnd(), 0);
  EXPECT_EQ(got.numbers()[0], 7 * before);
}

void splits(const Rank& self) {
  void* half = nullptr;
  // The ranks of each half in the opposite order.
  ASSERT_EQ(ncclCommSplit(self.communicator, self.rank % 2, -self.rank, &half, nullptr), 0);
  int count = 0, rank = -1;
  ncclCommCount(half, &count);
  ncclCommUserRank(half, &rank);
  const int members = (self.ranks + 1 - self.rank % 2) / 2;
  EXPECT_EQ(count, members);
  EXPECT_EQ(rank, members - 1 - self.rank / 2);
  Buffer mine({self.rank}), all(Numbers(static_cast<std::size_t>(members), -1));
  ASSERT_EQ(ncclAllGather(mine.at(), all.at(), 1, kInt64, half, nullptr), 0);
  const Numbers got = all.numbers();
  for (int i = 0; i < members; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], 2 * (members - 1 - i) + self.rank % 2);
  EXPECT_EQ(ncclCommDestroy(half), 0);
  void* none = &count;
  ASSERT_EQ(ncclCommSplit(self.communicator, -1, 0, &none, nullptr), 0);
  EXPECT_EQ(none, nullptr);
}

void floats(const Rank& self) {
  const float mine = 0.5F + static_cast<float>(self.rank);
  const std::uint16_t small = 0x3f80;  // 1 as bfloat16
  void *at = nullptr, *half = nullptr;
  cudaMalloc(&at, 64);
  cudaMalloc(&half, 64);
  cudaMemcpy(at, &mine, sizeof mine, cudaMemcpyHostToDevice);
  cudaMemcpy(half, &small, sizeof small, cudaMemcpyHostToDevice);
  ncclAllReduce(at, at, 1, kFloat, kSum, self.communicator, nullptr);
  ncclAllReduce(half, half, 1, kBfloat, kSum, self.communicator, nullptr);
  float sum = 0;
  std::uint16_t small_sum = 0;
  cudaMemcpy(&sum, at, sizeof sum, cudaMemcpyDeviceToHost);
  cudaMemcpy(&small_sum, half, sizeof small_sum, cudaMemcpyDeviceToHost);
  EXPECT_EQ(sum, 0.5F * static_cast<float>(self.ranks * self.ranks));
  EXPECT_EQ(small_sum, self.ranks == 2 ? 0x4000 : 0x4080) << "2 and 4 as bfloat16";
  cudaFree(at);
  cudaFree(half);
}

void everything(const Rank& self) {
  reduces(self);
  moves(self);
  sends_around(self);
  splits(self);
  floats(self);
}

NcclId fresh_id() {
  NcclId id;
  EXPECT_EQ(ncclGetUniqueId(&id), 0);
  return id;
}

void with_communicator(const NcclId& id, int ranks, int rank,
                       const std::function<void(const Rank&)>& work) {
  Rank self{nullptr, rank, ranks};
  ASSERT_EQ(cudaSetDevice(rank % 4), cudaSuccess);
  dawdle(rank);
  ASSERT_EQ(ncclCommInitRank(&self.communicator, ranks, id, rank), 0);
  work(self);
  EXPECT_EQ(ncclCommDestroy(self.communicator), 0);
}

void in_threads(int ranks, const std::function<void(const Rank&)>& work) {
  const NcclId id = fresh_id();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] { with_communicator(id, ranks, rank, work); });
  for (auto& thread : threads) thread.join();
}

// Children that have not used CUDA before: this process only has the id.
void in_processes(int ranks, const std::function<void(const Rank&)>& work) {
  const NcclId id = fresh_id();
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    children.push_back(fork());
    if (children.back() != 0) continue;
    with_communicator(id, ranks, rank, work);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
}

// First: from the first use of CUDA on, this process's forks cannot use it.
TEST(Communicators, InProcesses) {
  in_processes(2, everything);
  in_processes(4, everything);
}

TEST(Communicators, ARankThatEndsIsAnErrorOfTheOthers) {
  in_processes(2, [](const Rank& self) {
    Buffer mine({1}), all({0});
    if (self.rank == 1) std::_Exit(0);
    ASSERT_EQ(ncclAllReduce(mine.at(), all.at(), 1, kInt64, kSum, self.communicator, nullptr),
              kRemoteError);
    int error = 0;
    ncclCommGetAsyncError(self.communicator, &error);
    EXPECT_EQ(error, kRemoteError);
    EXPECT_NE(std::string(ncclGetLastError(nullptr)).find("has ended without ncclAllReduce"),
              std::string::npos)
        << ncclGetLastError(nullptr);
  });
}

TEST(Communicators, DifferentCallsAreAnErrorThatNamesBoth) {
  in_processes(2, [](const Rank& self) {
    Buffer mine({1}), all({0, 0});
    if (self.rank == 0) {
      EXPECT_EQ(ncclAllReduce(mine.at(), all.at(), 1, kInt64, kSum, self.communicator, nullptr),
                kInvalidUsage);
      EXPECT_STREQ(ncclGetLastError(nullptr),
                   "NCCL: rank 1 called ncclAllGather of 8 bytes, this one ncclAllReduce of 8");
    } else {
      EXPECT_EQ(ncclAllGather(mine.at(), all.at(), 1, kInt64, self.communicator, nullptr),
                kInvalidUsage);
    }
  });
}

TEST(Communicators, TheLedgerSaysWhichRankADeviceHas) {
  in_processes(4, [](const Rank& self) {
    EXPECT_EQ(device(self.rank).at("rank"), self.rank);
    EXPECT_EQ(device((self.rank + 1) % 4).at("rank"), nullptr);
    void* pair = nullptr;
    ASSERT_EQ(ncclCommSplit(self.communicator, self.rank / 2, self.rank, &pair, nullptr), 0);
    EXPECT_EQ(device(self.rank).at("rank"), self.rank) << "a smaller one tells nothing";
    EXPECT_EQ(ncclCommDestroy(pair), 0);
  });
}

// As nccl-tests counts them.
TEST(Communicators, CallsAreCountedWithTheirBytes) {
  in_processes(4, [](const Rank& self) {
    Buffer one({1}), four({1, 2, 3, 4});
    const int next = (self.rank + 1) % 4, before = (self.rank + 3) % 4;
    EXPECT_EQ(ncclAllGather(one.at(), four.at(), 1, kInt64, self.communicator, nullptr), 0);
    EXPECT_EQ(ncclReduceScatter(four.at(), one.at(), 1, kInt64, kSum, self.communicator, nullptr),
              0);
    for (int i = 0; i < 2; ++i)
      EXPECT_EQ(ncclBroadcast(one.at(), one.at(), 1, kInt64, 0, self.communicator, nullptr), 0);
    EXPECT_EQ(ncclAllReduce(four.at(), four.at(), 3, kInt64, kSum, self.communicator, nullptr), 0);
    EXPECT_EQ(ncclSend(one.at(), 1, kInt64, next, self.communicator, nullptr), 0);
    EXPECT_EQ(ncclRecv(four.at(), 1, kInt64, before, self.communicator, nullptr), 0);
    std::map<std::string, std::pair<int, int>> counted;
    const auto all = report();
    for (const auto& row : all.at("nccl_calls"))
      counted[row.at("call")] = {row.at("calls"), row.at("bytes")};
    EXPECT_EQ(counted, (std::map<std::string, std::pair<int, int>>{{"ncclAllGather", {1, 32}},
                                                                   {"ncclAllReduce", {1, 24}},
                                                                   {"ncclBroadcast", {2, 16}},
                                                                   {"ncclReduceScatter", {1, 32}},
                                                                   {"ncclSend", {1, 8}},
                                                                   {"ncclRecv", {1, 8}}}));
  });
}

TEST(Communicators, AStreamWaitsForTheOthers) {
  in_processes(2, [](const Rank& self) {
    std::vector<std::int64_t> large(1 << 18);
    void *from = nullptr, *to = nullptr;
    ASSERT_EQ(cudaMalloc(&from, 2 << 20), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&to, 2 << 20), cudaSuccess);
    const auto begin = std::chrono::steady_clock::now();
    const std::chrono::milliseconds late(300);
    if (self.rank == 1) std::this_thread::sleep_for(late);
    cudaStream_t stream, other;
    cudaStreamCreate(&stream);
    cudaStreamCreate(&other);
    cudaEvent_t end;
    cudaEventCreate(&end);
    EXPECT_EQ(ncclAllReduce(from, to, large.size(), kInt64, kSum, self.communicator, stream), 0);
    cudaEventRecord(end, stream);
    EXPECT_EQ(cudaEventQuery(end), self.rank == 0 ? cudaErrorNotReady : cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    const auto early = std::chrono::steady_clock::now() - begin;
    cudaStreamWaitEvent(other, end, 0);
    EXPECT_EQ(cudaStreamSynchronize(other), cudaSuccess);
    if (self.rank == 0) {
      EXPECT_LT(early, late / 2) << "another stream does not wait";
      EXPECT_GE(std::chrono::steady_clock::now() - begin, late / 2);
    }
    EXPECT_EQ(cudaEventQuery(end), cudaSuccess);
  });
}

TEST(Communicators, InThreads) {
  in_threads(2, everything);
  in_threads(4, everything);
}

TEST(Communicators, ManyRoundsInThreads) {
  in_threads(4, [](const Rank& self) {
    for (std::size_t round = 0; round < kMany; ++round) {
      if (round % 8 == 0) dawdle(self.rank);
      sends_around(self);
    }
  });
}

TEST(Communicators, OfAllDevicesOfAProcess) {
  void* all[4] = {};
  ASSERT_EQ(ncclCommInitAll(all, 4, nullptr), 0);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] {
      cudaSetDevice(rank);
      everything({all[rank], rank, 4});
      EXPECT_EQ(ncclCommDestroy(all[rank]), 0);
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Communicators, BuffersThatAreTooSmallAreRefused) {
  in_threads(2, [](const Rank& self) {
    void *from = nullptr, *to = nullptr;
    ASSERT_EQ(cudaMalloc(&from, 2 << 20), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&to, 2 << 20), cudaSuccess);
    EXPECT_EQ(ncclAllGather(from, to, 1 << 18, kInt64, self.communicator, nullptr),
              kInvalidArgument)
        << "2 MiB of each of two ranks do not fit into 2 MiB";
    cudaFree(from);
    cudaFree(to);
  });
}

TEST(Communicators, ARankTwiceIsRefused) {
  const NcclId id = fresh_id();
  void *first = nullptr, *second = nullptr;
  ASSERT_EQ(ncclCommInitRank(&first, 2, id, 0), 0);
  EXPECT_EQ(ncclCommInitRank(&second, 2, id, 0), kInvalidUsage);
  EXPECT_EQ(ncclCommInitRank(&second, 2, id, 2), kInvalidArgument);
  EXPECT_EQ(ncclCommDestroy(first), 0);
}

TEST(Communicators, IdsDiffer) {
  const NcclId a = fresh_id(), b = fresh_id();
  EXPECT_NE(std::string(a.bytes, sizeof a.bytes), std::string(b.bytes, sizeof b.bytes));
}

}  // namespace
}  // namespace peakbench::emulator

// With what the launcher gives: a folder that the processes share.
int main(int count, char** arguments) {
  using namespace peakbench::emulator;
  const char* folder = std::getenv(kSharedVariable);
  if (!folder || !*folder) {
    std::string made = testing::TempDir() + "peakbench-communicators.XXXXXX";
    if (!mkdtemp(made.data()) || !make_shared_cards(made + "/" + kSharedCardsFile)) return 1;
    const pid_t child = fork();
    if (child == 0) start_again_on("h100-80gb,memory=256MiB,count=4", arguments, made);
    int status = 1;
    waitpid(child, &status, 0);
    std::filesystem::remove_all(made);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  }
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
