// Streams that lag behind the host, under CUDA's own interface.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "in_emulation.h"

namespace peakbench::emulator {
namespace {

class LateStreams : public testing::Test {
 protected:
  void SetUp() override {
    for (auto* stream : {&one_, &other_})
      ASSERT_EQ(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), cudaSuccess);
  }
  cudaEvent_t recorded_on(cudaStream_t stream) {
    cudaEvent_t event = nullptr;
    EXPECT_EQ(cudaEventCreate(&event), cudaSuccess);
    EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
    return event;
  }
  cudaStream_t one_ = nullptr, other_ = nullptr;
};

TEST_F(LateStreams, AnEventIsDoneWhenTheHostHasWaitedForIt) {
  const auto first = recorded_on(one_), second = recorded_on(one_);
  EXPECT_EQ(cudaEventQuery(first), cudaErrorNotReady);
  EXPECT_EQ(cudaEventSynchronize(first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(second), cudaErrorNotReady);
  cudaEventRecord(first, one_);
  EXPECT_EQ(cudaEventQuery(first), cudaErrorNotReady) << "recorded anew";
  EXPECT_EQ(cudaStreamSynchronize(one_), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(first), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(second), cudaSuccess);
}

TEST_F(LateStreams, AnEventThatWasNeverRecordedIsDone) {
  cudaEvent_t event = nullptr;
  cudaEventCreate(&event);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
}

TEST_F(LateStreams, AStreamsEndIsThatOfWhatItHasWaitedFor) {
  const auto before = recorded_on(other_);
  cudaStreamWaitEvent(one_, before, 0);
  const auto after = recorded_on(other_);
  cudaEventSynchronize(recorded_on(one_));
  EXPECT_EQ(cudaEventQuery(before), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(after), cudaErrorNotReady);
  const auto of_default = recorded_on(nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(after), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(of_default), cudaSuccess);
}

TEST_F(LateStreams, ALoopThatOnlyAsksEnds) {
  const auto event = recorded_on(one_);
  int asked = 0;
  while (cudaEventQuery(event) == cudaErrorNotReady) ASSERT_LT(++asked, 100'000);
  EXPECT_GT(asked, 100) << "an allocator that looks now and then is told the truth";
}

}  // namespace
}  // namespace peakbench::emulator

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  peakbench::emulator::start_again_on("h100-80gb,memory=64MiB,streams=late", arguments);
  return RUN_ALL_TESTS();
}
