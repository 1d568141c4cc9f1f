// The ranges that a program names: which count, and which a thread is in.
#include <gtest/gtest.h>

#include "programs/ranges.h"
#include "support/fake_trace.h"

namespace peakbench::programs {
namespace {

using recording::RangeSource;

// A call stack by its files, the outermost first.
struct RangeStack {
  trace::FakeTrace fake;

  std::int32_t of(const std::vector<std::string>& files) {
    std::vector<trace::StackFrame> frames;
    for (const auto& file : files) frames.push_back(fake.frame(file, "f", 1));
    fake.from(frames);
    return fake.trace().events[fake.alloc(1)].stack;
  }
  bool counts(RangeSource source, const std::string& name, const std::vector<std::string>& files) {
    const auto stack = files.empty() ? trace::kNone : of(files);
    return is_named_by_program(fake.trace(), source, name, stack);
  }
};

const std::string kTorch = "/env/lib/python3.12/site-packages/torch/";

TEST(ProgramRanges, OfRecordFunctionAreThoseThatPyTorchDoesNotOpen) {
  RangeStack stack;
  const auto opened = [&](const std::string& name, const std::string& by) {
    return stack.counts(
        RangeSource::kRecordFunction, name,
        {"/home/me/train.py", by, kTorch + "autograd/profiler.py", kTorch + "_ops.py"});
  };
  EXPECT_TRUE(opened("rollout", "/home/me/train.py"));
  EXPECT_TRUE(opened("rollout", "/env/lib/python3.12/contextlib.py"));
  EXPECT_TRUE(opened("[pl]step", "/env/lib/python3.12/site-packages/lightning/profiler.py"));
  EXPECT_FALSE(opened("Optimizer.step#AdamW.step", kTorch + "optim/optimizer.py"));
  EXPECT_FALSE(opened("enumerate(DataLoader)#x.__next__", kTorch + "utils/data/dataloader.py"));
  EXPECT_FALSE(opened("DistributedDataParallel.forward", kTorch + "nn/parallel/distributed.py"));
  EXPECT_FALSE(opened("FSDP::all_gather", kTorch + "distributed/fsdp/_fully_shard/x.py"));
  EXPECT_FALSE(opened("ProfilerStep#3", kTorch + "profiler/profiler.py"));
}

TEST(ProgramRanges, WhatPyTorchOpensInCIsItsOwn) {
  RangeStack stack;
  for (const auto* name : {"## Call CompiledFxGraph abc ##", "Torch-Compiled Region: 0/0",
                           "TorchDynamo Cache Lookup", "nccl:all_reduce", "ProfilerStep#1"})
    EXPECT_FALSE(stack.counts(RangeSource::kRecordFunction, name, {"/home/me/train.py"})) << name;
  EXPECT_FALSE(stack.counts(RangeSource::kRecordFunction, "in a thread without Python", {}));
}

TEST(ProgramRanges, OfNvtxAndPhases) {
  RangeStack stack;
  const std::string tracer = "/opt/peakbench/lib/peakbench/tracer/peakbench_tracing.py";
  EXPECT_TRUE(stack.counts(RangeSource::kNvtx, "rollout",
                           {"/home/me/train.py", kTorch + "cuda/nvtx.py", tracer}));
  EXPECT_FALSE(stack.counts(RangeSource::kNvtx, "layer",
                            {"/home/me/train.py", kTorch + "nn/modules/module.py", tracer}));
  EXPECT_TRUE(stack.counts(RangeSource::kPhase, "ProfilerStep#1", {}));
}

class OpenRanges : public ::testing::Test {
 protected:
  std::string at(std::int32_t thread) const {
    std::string text;
    for (auto range = ranges_.at(thread); range != trace::kNone;
         range = found_[static_cast<std::size_t>(range)].parent)
      text = "/" + found_[static_cast<std::size_t>(range)].name + text;
    return text;
  }

  std::vector<trace::Range> found_;
  Ranges ranges_{found_};
};

TEST_F(OpenRanges, NestAndComeAgain) {
  EXPECT_EQ(at(0), "");
  ranges_.begin(0, 1, "epoch");
  ranges_.begin(0, 2, "rollout");
  EXPECT_EQ(at(0), "/epoch/rollout");
  ranges_.end(2);
  EXPECT_EQ(at(0), "/epoch");
  ranges_.begin(0, 3, "rollout");
  EXPECT_EQ(at(0), "/epoch/rollout");
  ranges_.end(3);
  ranges_.end(1);
  EXPECT_EQ(at(0), "");
  EXPECT_EQ(found_.size(), 2U);
}

TEST_F(OpenRanges, EndInWhateverOrder) {
  ranges_.begin(0, 1, "a");
  ranges_.begin(0, 2, "b");
  ranges_.end(1);
  EXPECT_EQ(at(0), "/a/b") << "it is called what it was called";
  ranges_.end(7);
  ranges_.end(2);
  EXPECT_EQ(at(0), "");
}

TEST_F(OpenRanges, AreAThreadsOwnButForBackward) {
  ranges_.begin(0, 1, "train");
  ranges_.begin(5, 2, "loader");
  EXPECT_EQ(at(1), "");
  ranges_.begin_backward(0);
  EXPECT_EQ(at(1), "/train") << "autograd's own thread";
  EXPECT_EQ(at(5), "/loader");
  ranges_.begin(1, 3, "hook");
  EXPECT_EQ(at(1), "/train/hook");
  ranges_.end(3);
  ranges_.end_backward(0);
  ranges_.end_backward(0);
  EXPECT_EQ(at(1), "");
}

TEST_F(OpenRanges, NamesFromALoopAreCutOff) {
  for (std::uint64_t i = 1; i <= 100'001; ++i) {
    ranges_.begin(0, i, "step " + std::to_string(i));
    if (i <= 100'000) ranges_.end(i);
  }
  EXPECT_EQ(at(0), "");
  EXPECT_EQ(found_.size(), 100'000U);
}

}  // namespace
}  // namespace peakbench::programs
