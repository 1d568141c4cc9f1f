// How an attempt at a task went, in every way that it can.
#include <gtest/gtest.h>

#include "cluster/attempt.h"

namespace peakbench::cluster {
namespace {

TEST(Attempt, Stages) {
  struct Row {
    TaskState state;
    bool stopped, settled;
    Stage stage;
  };
  const std::vector<Row> table{
      {TaskState::kNever, false, false, Stage::kNever},
      {TaskState::kNever, true, true, Stage::kNever},
      {TaskState::kWaiting, true, true, Stage::kAtWork},  // begun again: what came before is no end
      {TaskState::kRunning, false, true, Stage::kAtWork},
      {TaskState::kDone, false, false, Stage::kSilent},
      {TaskState::kDone, false, true, Stage::kEnded},
      {TaskState::kFailed, true, false, Stage::kEnded},
      {TaskState::kTimeLimit, false, false, Stage::kSilent},
      {TaskState::kOutOfMemory, false, true, Stage::kEnded},
      {TaskState::kCancelled, false, false, Stage::kSilent},
      {TaskState::kLost, false, true, Stage::kEnded},
  };
  for (std::size_t i = 0; i < table.size(); ++i)
    EXPECT_EQ(stage_of(table[i].state, table[i].stopped, table[i].settled), table[i].stage) << i;
}

// Two cases left: 4 was at work from the task's beginning, 5 since two workers had ended.
Attempt attempt(TaskState state, bool stopped = false) {
  return {state, stopped, true, {{4, 0, 0}, {5, 0, 2}}};
}

// The same, but nobody knows which was at work; 4 has failed twice before.
Attempt unknown(TaskState state) { return {state, false, true, {{4, 2, {}}, {5, 1, {}}}}; }

TEST(Attempt, Ends) {
  using enum TaskState;
  struct Row {
    Attempt attempt;
    AttemptEnd end;
    std::vector<CaseOver> over;
    std::vector<std::size_t> failed;
  };
  constexpr auto kTime = EndedBy::kTimeLimit, kMemory = EndedBy::kMemory;
  constexpr auto kFailures = EndedBy::kFailures;
  const std::vector<Row> table{
      {{kTimeLimit, true, true, {}}, AttemptEnd::kMeasured, {}, {}},
      {{kFailed, false, false, {}}, AttemptEnd::kMeasured, {}, {}},
      {attempt(kCancelled), AttemptEnd::kCancelled, {}, {}},
      {attempt(kCancelled, true), AttemptEnd::kCancelled, {}, {}},
      {attempt(kLost), AttemptEnd::kLost, {}, {}},
      {attempt(kLost, true), AttemptEnd::kLost, {}, {}},
      {unknown(kLost), AttemptEnd::kLost, {}, {}},
      {attempt(kTimeLimit), AttemptEnd::kOutOfTime, {{4, kTime, false}}, {}},
      {attempt(kFailed, true), AttemptEnd::kOutOfTime, {{4, kTime, false}}, {}},
      {attempt(kOutOfMemory, true), AttemptEnd::kOutOfTime, {{4, kTime, false}}, {}},
      {{kTimeLimit, false, true, {{5, 2, 3}}}, AttemptEnd::kOutOfTime, {}, {}},
      {unknown(kTimeLimit), AttemptEnd::kOutOfTime, {{4, kTime, true}}, {5}},
      {attempt(kOutOfMemory),
       AttemptEnd::kOutOfMemory,
       {{4, kMemory, false}, {5, kMemory, false}},
       {}},
      {unknown(kOutOfMemory), AttemptEnd::kOutOfMemory, {{4, kMemory, true}}, {5}},
      {attempt(kFailed), AttemptEnd::kFailed, {}, {4, 5}},
      {attempt(kDone), AttemptEnd::kFailed, {}, {4, 5}},  // it says so, and rows are missing
      {unknown(kFailed), AttemptEnd::kFailed, {{4, kFailures, true}}, {5}},
      {{kFailed, false, false, {{4, 0, {}}}}, AttemptEnd::kUnheard, {}, {}},
  };
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto found = conclude(table[i].attempt);
    EXPECT_EQ(found.end, table[i].end) << i;
    EXPECT_EQ(found.over, table[i].over) << i;
    EXPECT_EQ(found.failed, table[i].failed) << i;
  }
}

}  // namespace
}  // namespace peakbench::cluster
