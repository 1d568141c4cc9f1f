// What is said of programs that call functions of PyTorch in a way that costs memory, and that
// nothing is said of those that look like them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "reports/analysis/why.h"
#include "support/fake_program.h"

namespace peakbench::analysis {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::FakeProgram;

std::vector<std::string> told(FakeProgram program) {
  const auto trace = program.run();
  std::vector<std::string> found;
  for (const auto& finding : why(trace, trace::lifetimes(trace)).findings)
    found.push_back(std::string(to_string(finding.kind)) + ": " + finding.sentence);
  return found;
}

trace::StackFrame library(FakeProgram& program, const char* file, const char* function) {
  return program.fake.frame(std::string("/env/lib/python3.12/site-packages/") + file, function, 7);
}

// Logits of which log_softmax makes `softmax_mib`, and which go in the next step, or in backward.
FakeProgram with_logits(std::int64_t softmax_mib, bool freed_in_backward = false) {
  FakeProgram program;
  std::map<int, trace::FakeTrace::Allocation> logits;
  program.before = [=](FakeProgram& one, int step) mutable {
    one.fake.forward(step).from({one.main(24), one.model(30)}).at("head", "aten::mm");
    logits[step] = one.fake.alloc(32 * FakeProgram::kMiB);
    if (step > 0 && !freed_in_backward) one.fake.free(logits[step - 1]);
    one.fake.from({one.main(25)}).at("", "aten::_log_softmax");
    const auto softmax = one.fake.alloc(softmax_mib * FakeProgram::kMiB);
    one.fake.at("", "");
    if (freed_in_backward)
      one.fake.backward(step).free(logits[step]).free(softmax);
    else
      one.free_at_end = {softmax};
  };
  return program;
}

TEST(Outputs, OfWhichLogSoftmaxIsMadeAreNotReadByBackward) {
  for (const auto softmax_mib : {32, 64})
    EXPECT_THAT(told(with_logits(softmax_mib)),
                ElementsAre(AllOf(HasSubstr("outputs: 32.0 MiB of the peak's "),
                                  HasSubstr("is logits that a variable holds during backward"),
                                  HasSubstr("made at lib/model.py:30 (forward)"),
                                  HasSubstr("`del logits`) before loss.backward()"))));
}

TEST(Outputs, ThatSomethingElseIsMadeOfMayBeReadByBackward) {
  EXPECT_THAT(told(with_logits(16)), ElementsAre());
  EXPECT_THAT(told(with_logits(32, true)), ElementsAre());
}

TEST(Outputs, OfABackwardThatIsOverAreTold) {
  auto program = with_logits(16);
  program.after = [](FakeProgram& one, int) {
    one.fake.free(one.fake.from({one.main(50)}).alloc(100 * FakeProgram::kMiB));
  };
  EXPECT_THAT(told(program), ElementsAre(AllOf(HasSubstr("outputs of a forward whose backward is "
                                                         "over"),
                                               HasSubstr("after loss.backward()"))));
}

// Five batches of an evaluation behind step 2, whose outputs are joined to those before.
FakeProgram gathering(const char* op, bool grows) {
  FakeProgram program;
  program.after = [=](FakeProgram& one, int step) {
    if (step != 1) return;
    std::vector<trace::FakeTrace::Allocation> states;
    for (int batch = 1; batch <= 5; ++batch) {
      one.evaluate(step, false).from({one.main(60)}).at("", "aten::addmm");
      const auto output = one.fake.alloc(20 * FakeProgram::kMiB);
      one.says(trace::Phase::kData, step);
      one.fake.data(step).from({one.main(61)}).at("", op);
      if (batch == 1) states = {output};
      if (batch == 1) continue;
      states.push_back(one.fake.alloc((grows ? batch : 5) * 20 * FakeProgram::kMiB));
      one.fake.free(states[states.size() - 2]).free(output).at("", "");
    }
    one.fake.free(states.back());
  };
  return program;
}

TEST(Gathered, OutputsOfAnEvaluationAreTold) {
  EXPECT_THAT(told(gathering("aten::cat", true)),
              ElementsAre(AllOf(HasSubstr("gathered: 0.176 GiB of the peak's "),
                                HasSubstr("made at train.py:61 (main); move each batch's to the "
                                          "host (.cpu())"))));
}

TEST(Gathered, IsNotWhatIsNotJoinedOrDoesNotGrow) {
  EXPECT_THAT(told(gathering("aten::mul", true)), ElementsAre());
  EXPECT_THAT(told(gathering("aten::cat", false)), ElementsAre());
}

// A line that makes `mib[step]` in each step.
FakeProgram unequal(const std::vector<std::int64_t>& mib, std::int32_t other_line = 40) {
  FakeProgram program;
  program.steps = static_cast<int>(mib.size());
  program.before = [=](FakeProgram& one, int step) {
    const auto size = mib[static_cast<std::size_t>(step)];
    one.fake.forward(step).from({one.main(size > 100 ? other_line : 40)});
    one.free_at_end = {one.fake.alloc(size * FakeProgram::kMiB)};
  };
  return program;
}

TEST(Step, ThatNeedsFarMoreOfTheSameCodeIsTold) {
  EXPECT_THAT(told(unequal({4, 4, 200, 4, 5})),
              ElementsAre("step: Step 3 needs 0.309 GiB, and no other step more than 0.118 GiB: "
                          "0.190 GiB of the difference is made at train.py:40 (main), whose "
                          "tensors are larger in that step; cap what they are as large as (the "
                          "labels or boxes of a batch), or compute them in chunks."));
}

TEST(Step, OfManyOrOfOtherCodeIsNoFinding) {
  EXPECT_THAT(told(unequal({4, 200, 200, 4, 5})), ElementsAre());
  EXPECT_THAT(told(unequal({4, 4, 200, 4, 5}, 41)), ElementsAre());
  EXPECT_THAT(told(unequal({4, 200, 4})), ElementsAre()) << "of three steps one is nothing unusual";
}

// What torch.load made before the steps.
FakeProgram loading(std::int64_t mib, const char* file = "torch/serialization.py") {
  FakeProgram program;
  program.before = [=](FakeProgram& one, int step) {
    if (step > 0) return;
    one.fake.build().from({one.main(8), library(one, file, "load")});
    one.fake.alloc(mib * FakeProgram::kMiB);
    one.fake.data(step);
  };
  return program;
}

TEST(Loaded, IsWhatHasTheSizeOfAParameter) {
  EXPECT_THAT(told(loading(16)),
              ElementsAre(AllOf(HasSubstr("loaded: 16.0 MiB of the peak's "),
                                HasSubstr("made at train.py:8 (main); torch.load(..., "
                                          "map_location=\"cpu\")"))));
  EXPECT_THAT(told(loading(17)), ElementsAre()) << "data";
  EXPECT_THAT(told(loading(16, "safetensors/torch.py")), ElementsAre());
}

// A block that checkpoint() calls; it runs again in backward, where it rebuilds `rebuilt_mib`.
FakeProgram checkpointing(const char* function, bool runs_again, std::int64_t rebuilt_mib = 0) {
  FakeProgram program;
  program.before = [=](FakeProgram& one, int step) {
    one.fake.forward(step).from(
        {one.main(21), library(one, "torch/utils/checkpoint.py", function), one.model(30)});
    one.fake.free(one.fake.alloc(3 * FakeProgram::kMiB));
    if (!runs_again) return;
    const auto mark = [&](bool ends) {
      one.fake.trace().scopes.push_back({.event = one.fake.trace().events.size(),
                                         .kind = trace::ScopeKind::kRecomputation,
                                         .ends = ends});
    };
    one.fake.backward(step);
    mark(false);
    std::vector<trace::FakeTrace::Allocation> rebuilt;
    one.fake.recompute(step);
    if (rebuilt_mib > 0) rebuilt = {one.fake.alloc(rebuilt_mib * FakeProgram::kMiB)};
    one.fake.end_recompute();
    mark(true);
    for (const auto allocation : rebuilt) one.fake.free(allocation);
  };
  return program;
}

TEST(Checkpointing, ThatNoBackwardReachesIsTold) {
  EXPECT_THAT(told(checkpointing("forward", false)),
              ElementsAre(HasSubstr("checkpointing: No backward reaches what is checkpointed at "
                                    "train.py:21 (main): ")));
  EXPECT_THAT(told(checkpointing("checkpoint", false)), ElementsAre()) << "perhaps an evaluation";
}

TEST(Checkpointing, ThatRebuildsNothingIsTold) {
  EXPECT_THAT(told(checkpointing("checkpoint", true)),
              ElementsAre(HasSubstr("Checkpointing at train.py:21 (main) saves nothing: ")));
  EXPECT_THAT(told(checkpointing("checkpoint", true, 8)), ElementsAre());
}

// Operators that one line calls in a forward, 16 MiB each.
FakeProgram calling(const std::vector<const char*>& operators) {
  FakeProgram program;
  program.before = [=](FakeProgram& one, int step) {
    for (const auto* op : operators) {
      one.fake.forward(step).from({one.main(24), one.model(30)}).at("", op);
      one.free_at_end.push_back(one.fake.alloc(16 * FakeProgram::kMiB));
    }
    one.fake.at("", "");
  };
  return program;
}

TEST(Attention, ThatStoresItsScoresIsTold) {
  EXPECT_THAT(told(calling({"aten::bmm", "aten::_softmax", "aten::isneginf"})),
              ElementsAre(AllOf(HasSubstr("attention: 48.0 MiB of the peak's "),
                                HasSubstr("made at lib/model.py:30 (forward)"))));
  EXPECT_THAT(told(calling({"aten::_scaled_dot_product_attention_math"})),
              ElementsAre(HasSubstr("attention: 16.0 MiB of the peak's ")));
}

TEST(Attention, ThatAProgramWritesOrAKernelFusesIsNoFinding) {
  EXPECT_THAT(told(calling({"aten::bmm", "aten::_softmax", "aten::bmm"})), ElementsAre());
  EXPECT_THAT(told(calling({"aten::_scaled_dot_product_flash_attention"})), ElementsAre());
}

// Two captures in these pools, each with a segment of 32 MiB.
FakeProgram capturing(std::int32_t first, std::int32_t second) {
  FakeProgram program;
  program.after = [=](FakeProgram& one, int step) {
    if (step > 0) return;
    for (const auto pool : {first, second}) {
      one.fake.capture(pool).segment(trace::EventKind::kSegmentAlloc, 32 * FakeProgram::kMiB);
      one.fake.capture(trace::kNone);
    }
  };
  return program;
}

TEST(Pools, OfEveryGraphAreTold) {
  EXPECT_THAT(told(capturing(0, 1)),
              ElementsAre(HasSubstr("pools: 2 CUDA graphs have pools of their own, which reserve "
                                    "64.0 MiB; the largest reserves 32.0 MiB.")));
  EXPECT_THAT(told(capturing(0, 0)), ElementsAre());
}

}  // namespace
}  // namespace peakbench::analysis
