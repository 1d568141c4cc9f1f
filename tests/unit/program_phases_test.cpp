// Phases and steps of programs, from what they were seen to do.
#include <gtest/gtest.h>

#include <string>

#include "program/phases.h"
#include "trace/lifetimes.h"
#include "trace/phases.h"

namespace peakbench::program {
namespace {

using tracer::Mark;

// A program as a line of what it does: an event is a dot. The answer: for each event, its phase's
// first letters and its step, "-" while building.
struct Script {
  std::vector<TimedMark> marks;
  std::uint64_t events = 0;

  Script& event(int count = 1) {
    events += static_cast<std::uint64_t>(count);
    return *this;
  }
  Script& mark(Mark what, int value = 0, int thread = 0) {
    marks.push_back({events, what, thread, value});
    return *this;
  }
  Script& forward() {
    return mark(Mark::kForwardBegins).event().mark(Mark::kCallEnds).event();  // and the loss
  }
  Script& evaluate() { return mark(Mark::kEvaluationBegins).event().mark(Mark::kCallEnds).event(); }
  Script& untrained() {  // gradients are recorded, the model is not in training mode
    return mark(Mark::kEvaluationBegins, kWithGradients).event().mark(Mark::kCallEnds).event();
  }
  Script& backward() { return mark(Mark::kBackwardBegins).event().mark(Mark::kBackwardEnds); }
  Script& update(int optimizer = 0) {
    return mark(Mark::kUpdateBegins, optimizer).event().mark(Mark::kUpdateEnds, optimizer);
  }

  std::string phases(std::uint64_t built) const {
    trace::Trace trace;
    trace.events.resize(events);
    trace.scopes = scopes_of(marks, built);
    trace::decide_phases(trace);
    std::string text;
    for (const auto& event : trace.events)
      text += (text.empty() ? "" : " ") + std::string(trace::to_string(event.phase)) +
              (event.step == trace::kNone ? "" : std::to_string(event.step));
    return text;
  }
};

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
  program.event().untrained().backward().update().untrained().forward().backward().update();
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

TEST(ProgramPhases, AnEvaluationThatRecordsGradientsIsAModulesScope) {
  Script program;
  program.event().forward().backward().update().untrained().evaluate();
  const auto scopes = scopes_of(program.marks, 1);
  std::vector<std::uint64_t> modules;
  for (const auto& scope : scopes)
    if (scope.kind == trace::ScopeKind::kModule) modules.push_back(scope.event);
  EXPECT_EQ(modules, std::vector<std::uint64_t>{5});
  EXPECT_EQ(
      program.phases(1),
      "build forward0 forward0 backward0 optimizer_step0 evaluation0 data0 evaluation0 data0");
}

TEST(ProgramPhases, ProgramsWithoutAModelAreBuilding) {
  Script program;
  program.event(2);
  EXPECT_EQ(program.phases(2), "build build");
  program.backward();
  EXPECT_EQ(program.phases(3), "build build backward0");
}

}  // namespace
}  // namespace peakbench::program
