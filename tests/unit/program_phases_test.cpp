// Phases and steps of programs, from what they were seen to do.
#include <gtest/gtest.h>

#include <string>

#include "programs/phases.h"
#include "trace/lifetimes.h"
#include "trace/phases.h"

namespace peakbench::programs {
namespace {

using recording::Mark;

// A program as a line of what it does: an event is a dot. The answer: for each event, its phase's
// first letters and its step, "-" while building.
struct Script {
  std::vector<TimedMark> marks;
  std::uint64_t events = 0;
  std::int32_t call = 0;

  Script& event(int count = 1) {
    events += static_cast<std::uint64_t>(count);
    return *this;
  }
  Script& mark(Mark what, int value = 0, int thread = 0) {
    marks.push_back({events, what, thread, value, call});
    return *this;
  }
  Script& forward() {
    ++call;
    return mark(Mark::kForwardBegins).event().mark(Mark::kCallEnds).event();  // and the loss
  }
  Script& evaluate() {
    ++call;
    return mark(Mark::kEvaluationBegins).event().mark(Mark::kCallEnds).event();
  }
  Script& untrained() {  // a graph is recorded, the model is not in training mode
    ++call;
    return mark(Mark::kEvaluationBegins).event().mark(Mark::kCallEnds, kWithGraph).event();
  }
  Script& trained() {  // the same, in training mode
    ++call;
    return mark(Mark::kForwardBegins).event().mark(Mark::kCallEnds, kWithGraph).event();
  }
  Script& backward() { return mark(Mark::kBackwardBegins).event().mark(Mark::kBackwardEnds); }
  Script& backward_of(std::int32_t differentiated) {
    mark(Mark::kBackwardBegins).event().mark(Mark::kDifferentiates);
    marks.back().call = differentiated;
    return mark(Mark::kBackwardEnds);
  }
  std::vector<std::uint64_t> modules(bool ended_well = true) const {
    std::vector<std::uint64_t> found;
    for (const auto& scope : scopes_of(marks, step_ends(marks), 1, ended_well))
      if (scope.kind == trace::ScopeKind::kModule) found.push_back(scope.event);
    return found;
  }
  Script& update(int optimizer = 0) {
    return mark(Mark::kUpdateBegins, optimizer).event().mark(Mark::kUpdateEnds, optimizer);
  }

  std::string phases(std::uint64_t built) const {
    trace::Trace trace;
    trace.events.resize(events);
    trace.scopes = scopes_of(marks, step_ends(marks), built, true);
    trace::decide_phases(trace);
    std::string text;
    for (const auto& event : trace.events)
      text += (text.empty() ? "" : " ") + std::string(trace::to_string(event.phase)) +
              (event.step == trace::kNone ? "" : std::to_string(event.step));
    return text;
  }
};

TEST(ProgramPhases, ACallInTrainingWhoseGraphNoBackwardRunsBeginsAModule) {
  Script script;
  script.event().trained().backward_of(1).update();
  script.trained();
  const auto unused = script.events - 2;
  script.trained().backward_of(3).update();
  EXPECT_EQ(script.modules(), std::vector<std::uint64_t>{unused});
  Script without;  // no backward was seen to run any call's graph
  without.event().trained().backward().update().trained().trained().backward().update();
  EXPECT_EQ(without.modules(), std::vector<std::uint64_t>{});
}

TEST(ProgramPhases, OfAPlainTraining) {
  Script program;
  program.event(3);  // two parameters, a batch
  for (int step = 0; step < 2; ++step)
    program.forward().backward().event().update().event();  // clipped between; a batch after
  EXPECT_EQ(program.phases(2),
            "build build data0 forward0 forward0 backward0 optimizer_step0 optimizer_step0 data1 "
            "forward1 forward1 backward1 optimizer_step1 optimizer_step1 data1");
}

TEST(ProgramPhases, AccumulationIsOneStep) {
  Script program;
  program.event().forward().backward().event().forward().backward().update();
  program.forward().backward().forward().backward().update();
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 data0 forward0 forward0 backward0 optimizer_step0 "
            "forward1 forward1 backward1 forward1 forward1 backward1 optimizer_step1");
}

TEST(ProgramPhases, SeveralOptimizersHaveTheirTurnInAStep) {
  Script program;
  program.event();
  for (int step = 0; step < 2; ++step)
    program.forward().backward().update(0).forward().backward().update(1);
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 optimizer_step0 forward0 forward0 backward0 "
            "optimizer_step0 forward1 forward1 backward1 optimizer_step1 forward1 forward1 "
            "backward1 optimizer_step1");
}

TEST(ProgramPhases, UpdatesInsideOfBackwardAreItsOwn) {
  Script program;
  program.event();
  for (int step = 0; step < 2; ++step)
    program.forward()
        .mark(Mark::kBackwardBegins)
        .update(0)
        .event()
        .update(1)
        .mark(Mark::kBackwardEnds)
        .event();
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 backward0 backward0 data1 forward1 forward1 "
            "backward1 backward1 backward1 data1");
}

TEST(ProgramPhases, AClosureOfAnUpdateForwardsAndBackwards) {
  Script program;
  program.event()
      .mark(Mark::kUpdateBegins)
      .event()
      .forward()
      .backward()
      .event()
      .mark(Mark::kUpdateEnds);
  EXPECT_EQ(program.phases(1), "build optimizer_step0 forward0 forward0 backward0 optimizer_step0");
}

TEST(ProgramPhases, EvaluationGenerationAndSavingStandBesideTheSteps) {
  Script program;
  program.event().forward().backward().update().evaluate().evaluate();
  program.mark(Mark::kGenerationBegins).event().mark(Mark::kCallEnds).event();
  program.mark(Mark::kSaveBegins).event().mark(Mark::kSaveEnds).event();
  program.forward().backward().update();
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 optimizer_step0 evaluation1 data1 evaluation1 data1 "
            "generation1 data1 checkpoint1 data1 forward1 forward1 backward1 optimizer_step1");
}

TEST(ProgramPhases, AModelWhoseModeWasForgottenIsTrainedAllTheSame) {
  Script program;
  program.event().untrained().backward_of(1).update().untrained().forward().backward().update();
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 optimizer_step0 evaluation1 data1 forward1 forward1 "
            "backward1 optimizer_step1");
  Script perceptual;  // a loss by a model that is not trained, and a teacher's
  perceptual.event().forward().untrained().evaluate().backward().update();
  EXPECT_EQ(perceptual.phases(1),
            "build forward0 forward0 evaluation0 data0 evaluation0 forward0 backward0 "
            "optimizer_step0");
}

TEST(ProgramPhases, AForwardAfterTheLastUpdateIsAStepOfItsOwn) {
  Script program;  // and ran out of memory in it
  program.event().forward().backward().update().event().forward();
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 optimizer_step0 data1 forward1 forward1");
  Script tested;
  tested.event().forward().backward().update().evaluate();
  EXPECT_EQ(tested.phases(1),
            "build forward0 forward0 backward0 optimizer_step0 evaluation0 data0");
}

TEST(ProgramPhases, WhatIsSavedBeforeAModelIsThereIsPartOfTheBuild) {
  Script program;
  program.event().mark(Mark::kSaveBegins).event().mark(Mark::kSaveEnds).event().forward();
  EXPECT_EQ(program.phases(3), "build build build forward0 forward0");
}

TEST(ProgramPhases, WhereNothingUpdatesABackwardIsAStep) {
  Script program;
  program.event().forward().backward().event().forward().backward().event();
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 data1 forward1 forward1 backward1 data1");
}

TEST(ProgramPhases, ModulesCalledInBackwardAreNoForward) {
  Script program;
  program.event().forward().mark(Mark::kBackwardBegins).event();
  program.mark(Mark::kForwardBegins, 0, 1).mark(Mark::kRecomputationBegins, 0, 1).event();
  program.mark(Mark::kRecomputationEnds, 0, 1).mark(Mark::kCallEnds, 0, 1).event();
  program.mark(Mark::kBackwardEnds);
  EXPECT_EQ(program.phases(1), "build forward0 forward0 backward0 backward0 backward0");
}

TEST(ProgramPhases, BeforeAnUpdateThatCallsTheModelIsItsBatch) {
  Script program;
  program.event();
  for (int step = 0; step < 2; ++step) {
    program.forward().backward().event();  // of two micro-batches: the second one's batch
    program.mark(Mark::kUpdateBegins).forward().backward().event().mark(Mark::kUpdateEnds).event();
  }
  EXPECT_EQ(program.phases(1),
            "build forward0 forward0 backward0 data0 forward0 forward0 backward0 optimizer_step0 "
            "data1 forward1 forward1 backward1 data1 forward1 forward1 backward1 optimizer_step1 "
            "data1");
}

TEST(ProgramPhases, AnEvaluationThatRecordsAGraphIsAModulesScope) {
  Script program;
  program.event().forward().backward().update().untrained().evaluate();
  EXPECT_EQ(program.modules(), std::vector<std::uint64_t>{5});
  EXPECT_TRUE(program.modules(false).empty()) << "a backward may have been to come";
  EXPECT_EQ(
      program.phases(1),
      "build forward0 forward0 backward0 optimizer_step0 evaluation0 data0 evaluation0 data0");
}

// A backbone in eval() whose head is trained, and a teacher behind its student.
TEST(ProgramPhases, ACallThatABackwardRunsThroughIsAForward) {
  Script backbone;
  backbone.event().untrained().forward().backward_of(1).update();
  EXPECT_EQ(backbone.phases(1),
            "build forward0 forward0 forward0 forward0 backward0 optimizer_step0");
  EXPECT_TRUE(backbone.modules().empty());
  Script teacher;
  teacher.event().forward().untrained().backward().update();
  EXPECT_EQ(teacher.phases(1),
            "build forward0 forward0 evaluation0 forward0 backward0 optimizer_step0");
  EXPECT_EQ(teacher.modules(false), std::vector<std::uint64_t>{3}) << "a backward passed it by";
}

TEST(ProgramPhases, ProgramsWithoutAModelAreBuilding) {
  Script program;
  program.event(2);
  EXPECT_EQ(program.phases(2), "build build");
  program.backward();
  EXPECT_EQ(program.phases(3), "build build backward0");
}

}  // namespace
}  // namespace peakbench::programs
