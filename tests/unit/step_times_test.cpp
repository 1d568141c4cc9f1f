// The statistics of timed steps: nearest rank, so always a step that was measured.
#include <gtest/gtest.h>

#include <numeric>

#include "records/case.h"

namespace peakbench::records {
namespace {

void expect(const StepTimes& found, std::int64_t min, std::int64_t median, std::int64_t p90,
            std::int64_t count) {
  EXPECT_EQ(found.min, min);
  EXPECT_EQ(found.median, median);
  EXPECT_EQ(found.p90, p90);
  EXPECT_EQ(found.count, count);
}

TEST(StepTimes, AreOfStepsInAnyOrder) {
  expect(step_times_of({30, 10, 20}), 10, 20, 30, 3);
  expect(step_times_of({40, 10, 30, 20}), 10, 20, 40, 4);
  expect(step_times_of({50, 10, 30, 20, 40}), 10, 30, 50, 5);
}

TEST(StepTimes, TheNinetiethPercentileIsTheSmallestThatNineTenthsDoNotExceed) {
  std::vector<std::int64_t> steps(10);
  std::iota(steps.rbegin(), steps.rend(), 1);  // 10, 9, ..., 1
  expect(step_times_of(steps), 1, 5, 9, 10);
  steps.push_back(11);
  expect(step_times_of(steps), 1, 6, 10, 11);
  std::vector<std::int64_t> hundred(100);
  std::iota(hundred.begin(), hundred.end(), 1);
  expect(step_times_of(hundred), 1, 50, 90, 100);
}

TEST(StepTimes, OneStepIsAllOfThem) { expect(step_times_of({7}), 7, 7, 7, 1); }

TEST(StepTimes, OfNoStepAreZeros) { expect(step_times_of({}), 0, 0, 0, 0); }

}  // namespace
}  // namespace peakbench::records
