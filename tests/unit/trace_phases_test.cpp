// Phases from tables of scopes: each test is a rule of trace/phases.h.
//
// A table is read from left to right: `.` is an event; `build`, `forward0`, `optimizer_step1`, ...
// what the program says; `module` and `node`, `update`, `recompute` with their ends `/node`, ...;
// `@1` after a word: on another thread. Of each event follow its phase and step, and what it is in.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "trace/lifetimes.h"
#include "trace/phases.h"

namespace peakbench::trace {
namespace {

struct Word {
  std::string text;
  std::int32_t thread = 0;
};

Word word_of(const std::string& text) {
  const auto at = text.find('@');
  if (at == std::string::npos) return {text};
  return {text.substr(0, at), std::stoi(text.substr(at + 1))};
}

ScopeMark said(const std::string& word) {
  const auto digit = word.find_first_of("0123456789");
  ScopeMark mark;
  if (digit != std::string::npos) mark.step = std::stoi(word.substr(digit));
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    if (word.substr(0, digit) == to_string(static_cast<Phase>(i))) {
      mark.phase = static_cast<Phase>(i);
      return mark;
    }
  ADD_FAILURE() << "no such word: " << word;
  return mark;
}

ScopeMark mark_of(const std::string& word) {
  static const std::map<std::string, ScopeKind> kKinds = {{"module", ScopeKind::kModule},
                                                          {"node", ScopeKind::kBackwardNode},
                                                          {"update", ScopeKind::kUpdate},
                                                          {"recompute", ScopeKind::kRecomputation}};
  const bool ends = word.starts_with('/');
  const auto kind = kKinds.find(ends ? word.substr(1) : word);
  if (kind == kKinds.end()) return said(word);
  ScopeMark mark;
  mark.kind = kind->second;
  mark.ends = ends;
  return mark;
}

Trace trace_of(const std::string& table) {
  Trace trace;
  std::istringstream words(table);
  for (std::string text; words >> text;) {
    const auto word = word_of(text);
    if (word.text == ".") {
      trace.events.emplace_back().thread = word.thread;
      continue;
    }
    auto mark = mark_of(word.text);
    mark.event = trace.events.size();
    mark.thread = word.thread;
    trace.scopes.push_back(mark);
  }
  return trace;
}

std::string phases_of(const std::string& table) {
  auto trace = trace_of(table);
  decide_phases(trace);
  std::string words;
  for (const auto& event : trace.events) {
    if (!words.empty()) words += " ";
    words += to_string(event.phase);
    if (event.step != kNone) words += std::to_string(event.step);
    if (event.in_update) words += "+update";
    if (event.in_recompute) words += "+recompute" + std::to_string(event.recompute);
  }
  return words;
}

TEST(Phases, AreWhatTheProgramSays) {
  EXPECT_EQ(phases_of(". build . forward0 . . backward0 . optimizer_step0 . forward1 ."),
            "build build forward0 forward0 backward0 optimizer_step0 forward1");
}

TEST(Phases, OutsideOfAnOptimizerStepAreOnlyWhatTheProgramSays) {
  EXPECT_EQ(phases_of("forward0 node . /node backward0 module . optimizer_step0 . forward1 update "
                      ". /update ."),
            "forward0 backward0 optimizer_step0 forward1+update forward1");
}

// Sharpness-aware minimization: the gradient at the perturbed weights.
TEST(Phases, ASecondForwardAndBackwardInTheOptimizerStepAreSeen) {
  EXPECT_EQ(phases_of("backward0 . optimizer_step0 . module . . node . /node . update . /update ."),
            "backward0 optimizer_step0 forward0 forward0 backward0 backward0 "
            "optimizer_step0+update optimizer_step0");
}

TEST(Phases, EveryPassIsSeen) {
  EXPECT_EQ(
      phases_of("optimizer_step0 module . node . /node module . node . /node update /update ."),
      "forward0 backward0 forward0 backward0 optimizer_step0");
}

TEST(Phases, AModuleInABackwardNodeIsNoForward) {
  EXPECT_EQ(phases_of("optimizer_step0 . node . module . /node . module ."),
            "optimizer_step0 backward0 backward0 backward0 forward0");
}

TEST(Phases, WhatIsRecomputedIsNoPass) {
  EXPECT_EQ(phases_of("optimizer_step0 recompute module . node . /node /recompute . module ."),
            "optimizer_step0+recompute0 optimizer_step0+recompute0 optimizer_step0 forward0");
}

// A line search, for one, looks at the model in its update.
TEST(Phases, AnUpdateThatRunsForwardAndBackwardItselfStaysAnUpdate) {
  EXPECT_EQ(phases_of("optimizer_step0 update . module . node . /node . /update . module ."),
            "optimizer_step0+update optimizer_step0+update optimizer_step0+update "
            "optimizer_step0+update optimizer_step0 forward0");
}

TEST(Phases, AnUpdateOnOneThreadHoldsForThePassesOfAll) {
  EXPECT_EQ(phases_of("optimizer_step0 update node@1 .@1 /node@1 . /update node@1 .@1 /node@1 ."),
            "optimizer_step0 optimizer_step0+update backward0 backward0");
}

TEST(Phases, UpdatesOfAScheduleInBackwardAreOfItsBackward) {
  EXPECT_EQ(phases_of("backward0 node . update . /update . /node . optimizer_step0 ."),
            "backward0 backward0+update backward0 backward0 optimizer_step0");
  EXPECT_EQ(
      phases_of("optimizer_step0 module . node . update . /update . /node . update . /update"),
      "forward0 backward0 backward0+update backward0 backward0 optimizer_step0+update");
}

TEST(Phases, AnUpdateInAnUpdateEndsWithTheOuterOne) {
  EXPECT_EQ(phases_of("optimizer_step0 update update . /update . module . /update . module ."),
            "optimizer_step0+update optimizer_step0+update optimizer_step0+update optimizer_step0 "
            "forward0");
}

TEST(Phases, RecomputationsCountUp) {
  EXPECT_EQ(phases_of("backward0 recompute . . /recompute . recompute . /recompute forward1 "
                      "recompute . /recompute"),
            "backward0+recompute0 backward0+recompute0 backward0 backward0+recompute1 "
            "forward1+recompute2");
}

TEST(Phases, ARecomputationInAnotherRestoresTheOuterOne) {
  EXPECT_EQ(phases_of("backward0 recompute . recompute . recompute . /recompute . /recompute . "
                      "/recompute . recompute . /recompute"),
            "backward0+recompute0 backward0+recompute1 backward0+recompute2 backward0+recompute1 "
            "backward0+recompute0 backward0 backward0+recompute3");
}

// Backward of a CUDA device runs on a thread of its own.
TEST(Phases, ThreadsHaveScopesOfTheirOwn) {
  EXPECT_EQ(phases_of("backward0 node@1 update@1 . .@1 /update@1 /node@1 .@1"),
            "backward0 backward0+update backward0");
  EXPECT_EQ(phases_of("backward0 recompute@1 .@1 . recompute@2 .@2 .@1 /recompute@1 .@1 .@2"),
            "backward0+recompute0 backward0 backward0+recompute1 backward0+recompute0 backward0 "
            "backward0+recompute1");
  EXPECT_EQ(phases_of("optimizer_step0 node@1 .@1 module . /node@1 .@1"),
            "backward0 forward0 forward0");
  EXPECT_EQ(phases_of("optimizer_step0 recompute@1 node@1 .@1 module ."),
            "optimizer_step0+recompute0 forward0");
}

TEST(Phases, ScopesWithoutEventsCount) {
  EXPECT_EQ(phases_of("optimizer_step0 module update /update ."), "optimizer_step0");
  EXPECT_EQ(phases_of("optimizer_step0 update module /update ."), "optimizer_step0");
  EXPECT_EQ(phases_of("optimizer_step0 update /update module ."), "forward0");
}

// A trace that ended out of memory has beginnings without ends; what is read may have the reverse.
TEST(Phases, AnEndWithoutABeginningChangesNothing) {
  EXPECT_EQ(phases_of("backward0 /recompute . /update . /node . optimizer_step0 module ."),
            "backward0 backward0 backward0 forward0");
}

TEST(Phases, AreToldOfAnyMoment) {
  const auto trace = trace_of("build . optimizer_step3 . module . node");
  const auto at = [&](std::uint64_t event) {
    const auto [phase, step] = phase_at(trace.scopes, event);
    return std::string(to_string(phase)) + (step == kNone ? "" : std::to_string(step));
  };
  EXPECT_EQ(at(0), "build");
  EXPECT_EQ(at(1), "optimizer_step3");
  EXPECT_EQ(at(2), "forward3");
  EXPECT_EQ(at(trace.events.size()), "backward3") << "of what comes next";
}

}  // namespace
}  // namespace peakbench::trace
