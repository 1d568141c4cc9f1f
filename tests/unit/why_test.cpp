// What is said of a program's memory, and that nothing is said of a clean training.
#include "reports/analysis/why.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "reports/analysis/line_names.h"
#include "reports/analysis/peak_text.h"
#include "support/fake_program.h"

namespace peakbench::analysis {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::FakeProgram;

constexpr auto kMiB = FakeProgram::kMiB;

Why why_of(FakeProgram program) {
  const auto trace = program.run();
  return why(trace, trace::lifetimes(trace));
}

std::vector<std::string> sentences(const Why& why) {
  std::vector<std::string> found;
  for (const auto& finding : why.findings) found.push_back(finding.sentence);
  return found;
}

TEST(Why, SaysWhereThePeakIsAndWhichLinesHoldIt) {
  const auto found = why_of({});
  EXPECT_EQ(found.peak,
            "The peak is 0.113 GiB allocated, in backward of step 2: 40.0 MiB of 0.113 GiB is "
            "activations "
            "made at lib/model.py:12 (forward) and 32.0 MiB is optimizer state made at train.py:26 "
            "(main).");
}

TEST(Why, OfACleanTrainingIsNoFinding) { EXPECT_THAT(sentences(why_of({})), ElementsAre()); }

TEST(Why, OfATraceWithoutStacksIsNothing) {
  trace::FakeTrace fake;
  fake.forward(0).alloc(100);
  const auto found = why(fake.trace(), trace::lifetimes(fake.trace()));
  EXPECT_EQ(found.peak, "");
  EXPECT_THAT(sentences(found), ElementsAre());
}

TEST(Why, OfStacksWithoutStepsIsThePeak) {
  trace::FakeTrace fake("cuda:0");
  fake.from({fake.frame("a.py", "<module>", 3)}).alloc(3 * kMiB);
  const auto found = why(fake.trace(), trace::lifetimes(fake.trace()));
  EXPECT_THAT(found.peak, HasSubstr("is kept memory made at a.py:3."));
  EXPECT_THAT(sentences(found), ElementsAre());
}

TEST(Growth, IsToldWithItsLineAndHowMuchAStep) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int) { one.fake.from({one.main(30)}).alloc(12 * kMiB); };
  const auto found = why_of(program);
  ASSERT_THAT(sentences(found),
              ElementsAre("Memory grows by 12.0 MiB a step, to 48.0 MiB of the peak's 0.160 GiB: "
                          "made at train.py:30 (main); something keeps it: a list that grows? "
                          "Store x.detach().cpu(), or clear the list."))
      << "and its line is not told again as kept";
  EXPECT_EQ(found.findings[0].at_peak_bytes, 48 * kMiB);
  EXPECT_EQ(found.findings[0].kind, FindingKind::kGrowth);
  EXPECT_EQ(found.findings[0].bytes, 12 * kMiB);
  EXPECT_EQ(found.findings[0].line.line, 30);
}

TEST(Growth, OfSeveralLinesNamesTheLargest) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int) {
    one.fake.from({one.main(30)}).alloc(12 * kMiB);
    one.fake.from({one.main(31)}).alloc(4 * kMiB);
  };
  EXPECT_THAT(sentences(why_of(program)).front(),
              AllOf(HasSubstr("grows by 16.0 MiB a step"),
                    HasSubstr("12.0 MiB of it made at train.py:30 (main) and "
                              "4.0 MiB at train.py:31 (main);")));
}

TEST(Growth, HoldsAtThePeakWhatItsOwnLinesKept) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    one.fake.from({one.main(30)}).alloc(12 * kMiB);
    if (step == 1) one.fake.from({one.main(40)}).alloc(5 * kMiB);
  };
  EXPECT_EQ(why_of(program).findings[0].at_peak_bytes, 48 * kMiB);
}

TEST(Growth, OfWhatBackwardsDoNotFreeIsAGraph) {
  FakeProgram program;
  program.keeps_graphs = true;
  EXPECT_THAT(sentences(why_of(program)),
              ElementsAre(AllOf(HasSubstr("40.0 MiB of it made at lib/model.py:12 (forward)"),
                                HasSubstr("; the graph of every step is kept"))));
}

TEST(Growth, OfSomeOutputsOfForwardsIsAList) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    for (int i = 0; i < 2; ++i)
      one.fake.forward(step).from({one.main(24), one.call(), one.model(12)}).alloc(6 * kMiB);
  };
  EXPECT_THAT(
      sentences(why_of(program)),
      ElementsAre(HasSubstr(
          "made at lib/model.py:12 (forward), called at train.py:24 (main); "
          "something keeps it: a list that grows? Store x.detach().cpu(), or clear the list.")));
}

TEST(Growth, HasInputsThatAreKept) {
  FakeProgram program;
  program.keeps_inputs = true;
  EXPECT_THAT(sentences(why_of(program)),
              ElementsAre(HasSubstr("grows by 2.0 MiB a step, to 6.0 MiB of the peak's")));
}

// Batches that are sorted by length: each step's output is larger, and the last one's is there.
TEST(Growth, IsNotThatOfTheLastOutput) {
  for (const int loaded_ahead : {1, 2}) {
    FakeProgram program;
    program.steps = 9;
    std::map<int, trace::FakeTrace::Allocation> made;
    program.after = [&](FakeProgram& one, int step) {
      made[step] = one.fake.from({one.main(40)}).alloc((step + 1) * 5 * kMiB);
      if (step >= loaded_ahead) one.fake.free(made[step - loaded_ahead]);
    };
    EXPECT_THAT(sentences(why_of(program)), ElementsAre()) << loaded_ahead;
  }
}

// A buffer that torch.cat makes anew at line 41 behind each step for which `states` has a size.
FakeProgram joining(std::vector<std::int64_t> states) {
  FakeProgram program;
  program.steps = static_cast<int>(states.size());
  program.after = [states, last = std::optional<trace::FakeTrace::Allocation>()](FakeProgram& one,
                                                                                 int step) mutable {
    const auto mib = states[static_cast<std::size_t>(step)];
    if (mib == 0) return;
    one.fake.named(trace::Role::kKept, "joined buffer 1");
    const auto made = one.fake.from({one.main(41)}).alloc(mib * kMiB);
    if (last) one.fake.free(*last);
    last = made;
  };
  return program;
}

TEST(Growth, OfABufferThatIsMadeAnewIsTold) {
  const auto found = why_of(joining({6, 12, 18, 24, 30, 36}));
  ASSERT_THAT(sentences(found),
              ElementsAre(AllOf(HasSubstr("A buffer grows by 6.0 MiB a step, to "),
                                HasSubstr(": torch.cat makes it anew at train.py:41 (main); is it "
                                          "meant to have no limit? Cut it to its last rows: "
                                          "torch.cat([buffer, rows])[-limit:]."))));
  EXPECT_EQ(found.findings[0].kind, FindingKind::kGrowth);
  EXPECT_EQ(found.findings[0].bytes, 6 * kMiB);
  EXPECT_THAT(sentences(why_of(joining({6, 0, 12, 0, 20, 0, 28}))),
              ElementsAre(HasSubstr("A buffer grows by 6.0 MiB to 8.0 MiB now and then, to ")));
}

TEST(Growth, OfABufferThatStopsIsNotTold) {
  for (const auto& states : {std::vector<std::int64_t>{6, 12, 18, 18, 18, 18},
                             {6, 12, 18, 24, 0, 0, 0},
                             {6, 12, 18, 6, 12, 18},
                             {6, 12, 18}})
    EXPECT_THAT(sentences(why_of(joining(states))), ElementsAre());
}

TEST(Growth, OfAThousandthOfThePeakIsNotTold) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int) { one.fake.from({one.main(30)}).alloc(512); };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(Growth, NeedsThreeBeginningsAndEveryOneToBeHigher) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int) { one.fake.alloc(12 * kMiB); };
  program.steps = 3;
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
  program.steps = 5;
  program.after = [](FakeProgram& one, int step) {
    if (step != 2) one.fake.from({one.main(30)}).alloc(12 * kMiB);
  };
  for (const auto& finding : why_of(program).findings)
    EXPECT_NE(finding.kind, FindingKind::kGrowth);
}

TEST(Growth, IsNotThatOfTheDatasOwnSizes) {
  FakeProgram program;
  program.input_bytes = [](int step) { return (2 + step) * kMiB; };
  for (const auto& finding : why_of(program).findings)
    EXPECT_NE(finding.kind, FindingKind::kGrowth) << finding.sentence;
}

// An evaluation after step 2, whose activations stay until its end or are freed at once.
FakeProgram evaluating(bool keeps) {
  FakeProgram program;
  program.after = [keeps](FakeProgram& one, int step) {
    if (step != 1) return;
    one.evaluate(step, keeps);
    std::vector<trace::FakeTrace::Allocation> made;
    for (int i = 0; i < 4; ++i) {
      one.fake.from({one.fake.frame("/home/me/vit/eval.py", "validate", 12),
                     one.torch(i % 2 == 0 ? "linear" : "gelu")});
      made.push_back(one.fake.alloc(30 * kMiB));
      if (!keeps) one.fake.free(made.back());
    }
    if (!keeps) return;
    one.fake.optimizer_step(step);
    for (const auto allocation : made) one.fake.free(allocation);
  };
  return program;
}

TEST(Evaluation, ThatKeepsItsActivationsIsTold) {
  const auto found = why_of(evaluating(true));
  ASSERT_THAT(sentences(found),
              ElementsAre("0.117 GiB of the peak's 0.164 GiB is activations of an evaluation, "
                          "kept for a backward that never comes: made at eval.py:12 (validate); "
                          "was torch.no_grad() forgotten?"));
  EXPECT_EQ(found.findings[0].bytes, 120 * kMiB);
  EXPECT_THAT(found.peak, HasSubstr("in evaluation (step 2)"));
}

TEST(Evaluation, OfSeveralLinesIsOneFinding) {
  auto program = evaluating(true);
  program.after = [keeps = program.after](FakeProgram& one, int step) {
    if (step == 1) {
      one.evaluate(step, true).from({one.main(60)}).alloc(4 * kMiB);
      one.fake.from({one.main(61)}).alloc(2 * kMiB);
    }
    keeps(one, step);
  };
  const auto found = why_of(program);
  EXPECT_THAT(found.findings.front().sentence,
              AllOf(HasSubstr("0.123 GiB of the peak's"),
                    HasSubstr("0.117 GiB of it made at eval.py:12 (validate);")));
}

TEST(Evaluation, ThatLeavesAnOutputAloneKeepsNoGraph) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    if (step != 1) return;
    const auto output = one.evaluate(step, true).from({one.main(60)}).alloc(120 * kMiB);
    one.fake.optimizer_step(step).free(output);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(Evaluation, WithoutGradientsIsNoFinding) {
  EXPECT_THAT(sentences(why_of(evaluating(false))), ElementsAre());
}

TEST(Evaluation, WhoseOutputsAreCollectedWithoutGradientsIsNoFinding) {
  auto program = evaluating(false);
  program.after = [](FakeProgram& one, int step) {
    if (step != 1) return;
    const auto outputs = one.evaluate(step, false).from({one.main(60)}).alloc(120 * kMiB);
    one.fake.optimizer_step(step).free(outputs);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

// Buckets that are rebuilt, masks that are cached, the best and the last weights.
TEST(Kept, IsNotWhatOneOrTwoStepsMake) {
  FakeProgram program;
  program.steps = 9;
  program.after = [](FakeProgram& one, int step) {
    if (step == 1 || step == 3) one.fake.from({one.main(40)}).alloc(5 * kMiB);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(Kept, IsNotWhatIsFreedInTheNextStep) {
  FakeProgram program;
  std::map<int, trace::FakeTrace::Allocation> made;
  program.after = [&](FakeProgram& one, int step) {
    made[step] = one.fake.from({one.main(40)}).alloc(5 * kMiB);
    if (step > 0) one.fake.free(made[step - 1]);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(Kept, IsNotWhatIsMadeBeforeAModelIsCalled) {
  FakeProgram program;
  program.before = [](FakeProgram& one, int step) {
    if (step == 0) one.fake.data(0).from({one.main(12)}).alloc(5 * kMiB);  // an average
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(Kept, IsNotAStoreThatLetsTheOldGo) {
  FakeProgram program;
  program.steps = 9;
  std::map<int, trace::FakeTrace::Allocation> best;
  program.after = [&](FakeProgram& one, int step) {
    if (step % 3 != 0) return;
    best[step] = one.fake.from({one.main(40)}).alloc(5 * kMiB);
    if (step > 0) one.fake.free(best[step - 3]);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

// A copy after every second step, of the size of the weight or another, which is saved or only
// kept.
FakeProgram copying(bool saves, std::int64_t bytes = 16 * kMiB) {
  FakeProgram program;
  program.steps = 9;
  program.after = [=](FakeProgram& one, int step) {
    if (step % 2 == 0) return;
    one.fake.data(step + 1).from({one.main(40)}).alloc(bytes);
    if (saves) one.says(trace::Phase::kCheckpoint, step + 1);
  };
  return program;
}

TEST(Kept, OftenIsToldAsGrowthAndByCheckpointsAsSuch) {
  EXPECT_THAT(
      sentences(why_of(copying(true))),
      ElementsAre("Memory grows by 16.0 MiB with each checkpoint, to 64.0 MiB of the peak's "
                  "0.176 GiB, made at train.py:40 (main): is a copy of the state kept on "
                  "the card? Copy it to the host: value.cpu()."));
  EXPECT_THAT(sentences(why_of(copying(false))),
              ElementsAre(HasSubstr("grows by 16.0 MiB now and then, to 64.0 MiB of the peak's")));
  EXPECT_THAT(sentences(why_of(copying(true, 20 * kMiB))),
              ElementsAre(HasSubstr("grows by 20.0 MiB now and then, to 80.0 MiB of the peak's")))
      << "no state has that size";
}

TEST(Kept, IsNotWhatATrainingKeepsAnyway) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    if (step != 1) return;
    using trace::Role;
    for (const auto role : {Role::kParameter, Role::kBuffer, Role::kGradient, Role::kOptimizerState,
                            Role::kWorkspace, Role::kInput})
      one.fake.named(role, "x").alloc(5 * kMiB);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(Inputs, LargerInTheStepOfThePeakAreTold) {
  FakeProgram program;
  program.input_bytes = [](int step) { return (step == 3 ? 4 : 2) * kMiB; };
  const auto found = why_of(program);
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].kind, FindingKind::kInputs);
  EXPECT_THAT(
      found.findings[0].sentence,
      "The peak of 0.117 GiB is in step 4, whose inputs are larger than other steps': 2.0 "
      "times those of step 3 (4.0 MiB, made at train.py:22 (main)). Limit the size of a batch "
      "(max_length of a tokenizer, or a number of tokens).");
}

TEST(Inputs, OfAsManyBytesInALargerBlockAreNoFinding) {
  FakeProgram program;
  program.before = [](FakeProgram& one, int step) {
    one.fake.named(trace::Role::kInput, "more");
    one.free_at_end = {one.fake.alloc(9 * kMiB, (step == 3 ? 10 : 9) * kMiB)};
  };
  EXPECT_THAT(why_of(program).peak, HasSubstr("step 4"));
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

// A batch of an evaluation that a variable keeps until the next one.
TEST(Inputs, OfAnEvaluationAreNotThoseOfTheStep) {
  FakeProgram program;
  program.before = [](FakeProgram& one, int step) {
    if (step != 3) return;
    one.fake.named(trace::Role::kInput, "validation").alloc(8 * kMiB);
    one.fake.evaluation(step).free(one.fake.alloc(kMiB));
    one.fake.data(step);
  };
  EXPECT_THAT(why_of(program).peak, HasSubstr("step 4"));
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

// The step's larger batch comes after the peak of what was made before it.
TEST(Inputs, ThatAreNotThereAtThePeakExplainNothing) {
  FakeProgram program;
  program.input_bytes = [](int step) { return (step == 3 ? 4 : 2) * kMiB; };
  program.after = [](FakeProgram& one, int step) {
    if (step == 2) one.fake.free(one.fake.data(3).from({one.main(20)}).alloc(900 * kMiB));
  };
  EXPECT_THAT(why_of(program).peak, HasSubstr("step 4"));
  for (const auto& finding : why_of(program).findings)
    EXPECT_NE(finding.kind, FindingKind::kInputs) << finding.sentence;
}

TEST(Inputs, ThatSomethingKeepsAreNotThoseOfLaterSteps) {
  FakeProgram program;
  program.keeps_inputs = true;
  for (const auto& finding : why_of(program).findings)
    EXPECT_NE(finding.kind, FindingKind::kInputs) << finding.sentence;
}

// A forward that copies what it made, within a scope that says what the copy is, if any.
FakeProgram converting(std::optional<trace::ScopeKind> kind) {
  FakeProgram program;
  program.before = [=](FakeProgram& one, int step) {
    one.fake.forward(step).from({one.main(24), one.model(12)}).at("head", "aten::linear");
    const auto made = one.fake.alloc(20 * kMiB);
    one.fake.from({one.main(27)}).at("", "aten::_to_copy");
    const auto mark = [&](bool ends) {
      if (kind)
        one.fake.trace().scopes.push_back(
            {.event = one.fake.trace().events.size(), .kind = *kind, .ends = ends});
    };
    mark(false);
    const auto copy = one.fake.alloc(40 * kMiB);
    mark(true);
    one.free_at_end = {made, copy};
    one.fake.at("", "");
  };
  return program;
}

TEST(Copies, ToALargerDtypeAreTold) {
  EXPECT_THAT(
      sentences(why_of(converting(trace::ScopeKind::kLargerCopy))),
      ElementsAre("40.0 MiB of the peak's 0.172 GiB is copies in a larger dtype: made at "
                  "train.py:27 (main); is .float() (or autocast's copy) needed there? "
                  "Everything computed from such a copy is as large. Of logits, compute the "
                  "loss in chunks."));
}

TEST(Copies, OfFrozenParametersInASmallerDtypeAreTold) {
  EXPECT_THAT(sentences(why_of(converting(trace::ScopeKind::kFrozenCopy))),
              ElementsAre("40.0 MiB of the peak's 0.172 GiB is copies of frozen parameters in a "
                          "smaller dtype: made at train.py:27 (main); load these parameters in "
                          "that dtype, and nothing is copied: from_pretrained(..., "
                          "torch_dtype=torch.bfloat16), for example."));
}

TEST(Copies, OfWhichNothingIsSaidAreNoFinding) {
  EXPECT_THAT(sentences(why_of(converting(std::nullopt))), ElementsAre())
      << "one of twice the bytes may be of an expanded view";
}

TEST(Elsewhere, IsStateOfParametersThatAreOnAnotherDevice) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    if (step > 0) return;
    one.fake.from({one.main(28)});
    one.fake.named(trace::Role::kOptimizerState, "words.exp_avg of a parameter on cpu");
    one.fake.alloc(5 * kMiB);
  };
  EXPECT_THAT(sentences(why_of(program)),
              ElementsAre("5.0 MiB of the peak's 0.118 GiB is optimizer state of parameters that "
                          "are on another device: made at train.py:28 (main); is it meant to be "
                          "where its parameters are? Make it by torch.zeros_like(parameter)."));
}

TEST(Sentences, BeginWithWhatExplainsATenthOfThePeak) {
  FakeProgram program;
  program.steps = 9;
  program.after = [](FakeProgram& one, int step) {
    one.fake.from({one.main(30)}).alloc(12 * kMiB);
    if (step % 2 == 1) one.fake.from({one.main(31)}).alloc(kMiB);
  };
  const auto told = sentences_of(why_of(program));
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].kind, "growth");
  EXPECT_EQ(told[1].kind, "") << "where the peak is";
  EXPECT_EQ(told[2].kind, "kept");
  EXPECT_TRUE(sentences_of({}).empty());
}

TEST(Inputs, OfTheFirstStepAreNoFinding) {
  FakeProgram program;
  program.input_bytes = [](int step) { return (step == 0 ? 64 : 2) * kMiB; };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(OutOfMemory, SaysWhatWasAskedAndWhatFilledTheCard) {
  FakeProgram program;
  program.runs_out = true;
  const auto found = why_of(program);
  ASSERT_THAT(sentences(found),
              ElementsAre("Memory ran out in forward of step 5: 64.0 MiB was asked for at "
                          "lib/model.py:15 (forward), 10.0 MiB was free; 40.0 MiB of 100.0 MiB is "
                          "activations made at lib/model.py:12 (forward) and 32.0 MiB is optimizer "
                          "state made at train.py:26 (main)."));
  EXPECT_EQ(found.findings[0].bytes, 64 * kMiB);
  EXPECT_EQ(found.findings[0].line.line, 15);
}

TEST(PeakText, InShortIsTheCategoriesAndThreeLines) {
  FakeProgram program;
  const auto trace = program.run();
  const auto text = peak_in_short(trace, trace::lifetimes(trace), {"rank 3", 4});
  EXPECT_THAT(text, ::testing::StartsWith(
                        "What fills the peak of rank 3, the largest of 4 (in backward of step 2): "
                        "activation 50.0 MiB, optimizer state 32.0 MiB, "));
  EXPECT_THAT(text, HasSubstr("\n    40.0 MiB   34.5%  lib/model.py:12 (forward)  activation 40.0 "
                              "MiB\n    32.0 MiB   27.6%  train.py:26 (main)  optimizer state 32.0 "
                              "MiB\n"));
  EXPECT_THAT(text, ::testing::EndsWith("\n    28.0 MiB          3 more lines\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  EXPECT_THAT(peak_in_short(trace, trace::lifetimes(trace), {}),
              ::testing::StartsWith("What fills the peak (in backward of step 2): "));
}

// What was there at the peak may be gone by then.
TEST(PeakText, InShortOfAFailureIsWhatFilledTheCardThen) {
  FakeProgram program;
  program.runs_out = true;
  const auto trace = program.run();
  EXPECT_THAT(peak_in_short(trace, trace::lifetimes(trace), {}),
              ::testing::StartsWith("What filled the card when memory ran out ("));
}

TEST(PeakText, BelowALineThatHoldsOverHalfAreTheLibrariesThatItCalls) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    if (step > 0) return;
    const auto loss = one.fake.frame(
        "/env/lib/python3.12/site-packages/transformers/loss/loss_utils.py", "cross_entropy", 42);
    one.fake.from({one.main(31), loss, one.torch("cross_entropy")}).alloc(400 * kMiB);
  };
  const auto trace = program.run();
  const auto lifetimes = trace::lifetimes(trace);
  const auto called = HasSubstr(
      "By line of what it calls:\n   0.391 GiB   77.5%  transformers/loss/loss_utils.py:42 "
      "(cross_entropy)");
  EXPECT_THAT(peak_text(trace, false), called);
  EXPECT_THAT(peak_in_short(trace, lifetimes, {}), called);
  const auto json = peak_json(trace, lifetimes);
  EXPECT_EQ(json["lines"][0]["line"], 31);
  EXPECT_EQ(json["called_lines"][0]["function"], "cross_entropy");
  EXPECT_EQ(json["called_lines"][0]["bytes"], 400 * kMiB);
  const auto plain = FakeProgram().run();
  EXPECT_TRUE(peak_json(plain, trace::lifetimes(plain))["called_lines"].empty());
}

TEST(PeakText, AsJsonHasTheNamesOfTheRunsMemory) {
  FakeProgram program;
  const auto trace = program.run();
  const auto json = peak_json(trace, trace::lifetimes(trace));
  EXPECT_EQ(json["peak_allocated_bytes"], 116 * kMiB);
  EXPECT_EQ(json["peak_phase"], "backward");
  EXPECT_EQ(json["peak_step"], 1);
  EXPECT_EQ(json["at_peak"]["activation"], 50 * kMiB);
  EXPECT_EQ(json["peak_when"], "in backward of step 2");
  ASSERT_EQ(json["lines"].size(), 6u);
  EXPECT_EQ(json["lines"][0].dump(),
            R"({"file":"/home/me/vit/lib/model.py","line":12,"function":"forward",)"
            R"("bytes":41943040,"by_category":{"activation":41943040}})");
}

TEST(PeakText, AtLengthTellsAFailureAndWhatWasCaught) {
  FakeProgram program;
  program.runs_out = true;
  auto trace = program.run();
  const auto ended = peak_text(trace, true);
  EXPECT_THAT(ended, ::testing::StartsWith("Memory ran out in forward of step 5: "));
  EXPECT_THAT(ended, HasSubstr("\nThe peak is 0.113 GiB allocated, in backward of step 2: "));
  EXPECT_THAT(ended, HasSubstr("\nWhat filled the card then, by line of your code:\n"));
  EXPECT_THAT(ended, ::testing::Not(HasSubstr("and continued")));
  const auto caught = peak_text(trace, false);
  EXPECT_THAT(caught, ::testing::Not(HasSubstr("What filled the card then")));
  EXPECT_THAT(caught, HasSubstr("\nRan out of memory and continued:\n  64.0 MiB asked for at "
                                "lib/model.py:15 (forward), in forward of step 5\n"));
}

TEST(OutOfMemory, ThatWasCaughtIsNoFinding) {
  FakeProgram program;
  program.after = [](FakeProgram& one, int step) {
    if (step == 1) one.fake.out_of_memory(64 * kMiB);
  };
  EXPECT_THAT(sentences(why_of(program)), ElementsAre());
}

TEST(LineNames, LeaveOutWhatAllFilesHaveInCommon) {
  trace::Trace trace;
  trace.files = {"/home/me/vit/train.py", "/home/me/vit/lib/model.py",
                 "/env/lib/python3.12/site-packages/torch/nn/linear.py",
                 "/usr/lib/python3.11/contextlib.py", "<string>"};
  const LineNames names(trace);
  EXPECT_EQ(names.file(trace.files[0]), "train.py");
  EXPECT_EQ(names.file(trace.files[1]), "lib/model.py");
  EXPECT_EQ(names.file(trace.files[2]), "torch/nn/linear.py");
  EXPECT_EQ(names.file(trace.files[3]), "python3.11/contextlib.py");
  EXPECT_EQ(names.file(trace.files[4]), "<string>");
  EXPECT_EQ(names.in_words({trace.files[0], "<module>", 4}), "train.py:4");
  EXPECT_EQ(names.in_words({}), "an unknown line");
  trace.files.push_back("/tmp/ipykernel_4711/2345678.py");
  EXPECT_EQ(LineNames(trace).file(trace.files[5]), "<cell>");
  EXPECT_EQ(LineNames(trace).file(trace.files[0]), "train.py");
  trace.files.push_back("/tmp/ipykernel_4711/3456789.py");
  EXPECT_EQ(LineNames(trace).in_words({trace.files[6], "<module>", 4}), "<cell 2>:4");
  trace.files.push_back("<ipython-input-12-0f3c>");
  EXPECT_EQ(LineNames(trace).in_words({trace.files.back(), "<module>", 4}), "In[12]:4");
  EXPECT_EQ(LineNames(trace).file(trace.files[0]), "train.py");
  trace.files.push_back("/srv/shared.py");
  EXPECT_EQ(LineNames(trace).file(trace.files[0]), trace.files[0])
      << "the root is nothing in common";
}

}  // namespace
}  // namespace peakbench::analysis
