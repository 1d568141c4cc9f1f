// Where running turns into not running, against brute force.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "search/boundary.h"

namespace peakbench::search {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// Numbers from 1 on, those that run. No number may be run twice or outside of it.
class Oracle {
 public:
  explicit Oracle(std::vector<bool> runs) : runs_(std::move(runs)) {}

  Try as_try() {
    return [this](std::int64_t number) -> Tried {
      EXPECT_GE(number, 1);
      EXPECT_LE(number, last());
      EXPECT_EQ(std::ranges::count(asked_, number), 0) << number << " is run twice";
      asked_.push_back(number);
      return {.answer = runs(number) ? Answer::kRuns : Answer::kDoesNot, .hint = hint};
    };
  }
  bool runs(std::int64_t number) const { return runs_.at(static_cast<std::size_t>(number - 1)); }
  std::int64_t last() const { return static_cast<std::int64_t>(runs_.size()); }
  const std::vector<std::int64_t>& asked() const { return asked_; }

  std::optional<std::int64_t> hint;

 private:
  std::vector<bool> runs_;
  std::vector<std::int64_t> asked_;
};

Oracle up_to(std::int64_t boundary, std::int64_t last) {
  std::vector<bool> runs(static_cast<std::size_t>(last), false);
  std::fill_n(runs.begin(), boundary, true);
  return Oracle(std::move(runs));
}

TEST(Boundary, DoublesThenHalves) {
  auto oracle = up_to(11, 1000);
  const auto found = largest_that_runs({.first = 1, .last = 1000}, oracle.as_try(), 1);
  EXPECT_EQ(found.runs, 11);
  EXPECT_EQ(found.does_not, 12);
  EXPECT_THAT(oracle.asked(), ElementsAre(1, 2, 4, 8, 16, 12, 10, 11));
}

TEST(Boundary, AHintIsRunAndThenItsNeighbour) {
  auto oracle = up_to(300, 100'000);
  oracle.hint = 300;
  const auto found = largest_that_runs({.first = 1, .last = 100'000}, oracle.as_try(), 1);
  EXPECT_EQ(found.runs, 300);
  EXPECT_THAT(oracle.asked(), ElementsAre(1, 300, 301));
}

TEST(Boundary, NothingRuns) {
  auto oracle = up_to(0, 50);
  const auto found = largest_that_runs({.first = 1, .last = 50}, oracle.as_try());
  EXPECT_EQ(found.runs, std::nullopt);
  EXPECT_EQ(found.does_not, 1);
  EXPECT_EQ(found.stopped_at, std::nullopt);
  EXPECT_THAT(oracle.asked(), ElementsAre(1, 2, 3));
}

TEST(Boundary, EverythingRuns) {
  auto oracle = up_to(50, 50);
  const auto found = largest_that_runs({.first = 1, .last = 50}, oracle.as_try());
  EXPECT_EQ(found.runs, 50);
  EXPECT_EQ(found.does_not, std::nullopt);
}

TEST(Boundary, OneNumberIsEnough) {
  auto oracle = up_to(1, 1);
  EXPECT_EQ(largest_that_runs({.first = 1, .last = 1}, oracle.as_try()).runs, 1);
  EXPECT_THAT(oracle.asked(), SizeIs(1));
}

// Nothing that was taken for granted is in the answer without having been run.
TEST(Boundary, WhatIsLikelyIsRunWhereItMatters) {
  auto right = up_to(20, 100);
  const Bounds bounds{.first = 1, .last = 100, .start = 25, .likely_runs = 20, .likely_not = 40};
  const auto found = largest_that_runs(bounds, right.as_try(), 1);
  EXPECT_EQ(found.runs, 20);
  EXPECT_EQ(found.does_not, 21);
  EXPECT_TRUE(found.tried.contains(20));
  auto too_low = up_to(70, 100);
  EXPECT_EQ(largest_that_runs(bounds, too_low.as_try(), 1).runs, 70);
  auto too_high = up_to(3, 100);
  EXPECT_EQ(largest_that_runs(bounds, too_high.as_try(), 1).runs, 3);
}

TEST(Boundary, AnotherOutcomeEndsTheSearch) {
  std::vector<std::int64_t> asked;
  const auto found =
      largest_that_runs({.first = 1, .last = 100}, [&](std::int64_t number) -> Tried {
        asked.push_back(number);
        return {.answer = number < 4 ? Answer::kRuns : Answer::kOther};
      });
  EXPECT_EQ(found.stopped_at, 4);
  EXPECT_EQ(found.runs, 2);
  EXPECT_EQ(found.does_not, std::nullopt);
  EXPECT_THAT(asked, ElementsAre(1, 2, 4));
}

TEST(Boundary, WhatSpeaksAgainstItIsSaid) {
  //                              1     2      3     4     5     6      7     8
  Oracle holed(std::vector<bool>{true, true, false, true, true, false, true, false});
  const auto found = largest_that_runs(
      {.first = 1, .last = 8, .start = 5, .likely_runs = 4, .likely_not = 6}, holed.as_try());
  EXPECT_EQ(found.runs, 5);
  EXPECT_THAT(found.against, ElementsAre(3, 7));
}

struct Shape {
  bool monotone;
  bool hinted;
};

class AgainstBruteForce : public testing::TestWithParam<Shape> {};

// Whatever the oracle: what is said to run was run, and what is said not to, and they are next to
// each other; of a monotone one it is the boundary; what is within reach of the check is said.
TEST_P(AgainstBruteForce, Holds) {
  constexpr int kRounds = 3000;
  std::mt19937 random(7);
  const auto below = [&](std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random);
  };
  for (int round = 0; round < kRounds; ++round) {
    const auto last = 1 + below(200), boundary = below(last + 1);
    std::vector<bool> runs(static_cast<std::size_t>(last), false);
    std::fill_n(runs.begin(), boundary, true);
    if (!GetParam().monotone)
      for (int flips = 0; flips < 3; ++flips) {
        const auto at = static_cast<std::size_t>(below(last));
        runs[at] = !runs[at];
      }
    Oracle oracle(runs);
    Bounds bounds{.first = 1, .last = last};
    if (below(2) == 0) bounds.start = 1 + below(last);
    if (below(2) == 0) bounds.likely_runs = below(last + 2);
    if (below(2) == 0) bounds.likely_not = below(last + 2);
    if (GetParam().hinted) oracle.hint = boundary - 2 + below(5);
    const auto found = largest_that_runs(bounds, oracle.as_try());
    const auto low = found.runs.value_or(0), high = found.does_not.value_or(last + 1);
    ASSERT_EQ(high, low + 1) << "round " << round;
    if (found.runs) {
      ASSERT_TRUE(oracle.runs(low)) << "round " << round;
    }
    if (found.does_not) {
      ASSERT_FALSE(oracle.runs(high)) << "round " << round;
    }
    if (GetParam().monotone) {
      ASSERT_EQ(low, boundary) << "round " << round;
      ASSERT_THAT(found.against, IsEmpty());
      ASSERT_LE(oracle.asked().size(), 40U) << "round " << round;
    }
    for (const auto number : {low - 2, low - 1, high + 1, high + 2}) {
      if (number < 1 || number > last || oracle.runs(number) == (number < low)) continue;
      ASSERT_EQ(std::ranges::count(found.against, number), 1) << "round " << round;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Boundary, AgainstBruteForce,
                         testing::Values(Shape{true, false}, Shape{true, true}, Shape{false, false},
                                         Shape{false, true}));

}  // namespace
}  // namespace peakbench::search
