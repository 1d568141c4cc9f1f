// Whether a promise is held, from numbers alone.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "worker/equivalence.h"

namespace peakbench::worker {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Difference difference(const std::string& where, const std::vector<double>& values,
                      const std::vector<double>& reference, const Tolerance& tolerance = {}) {
  Difference found;
  found.where = where;
  compare(found, values.data(), reference.data(), values.size(), tolerance);
  return found;
}

records::Equivalence promise(const std::string& what) {
  records::Equivalence promise;
  promise.promise = what;
  return promise;
}

TEST(Compare, FindsTheLargestDifference) {
  const auto found = difference("w", {1, 5, 3}, {1, 2, 4});
  EXPECT_FALSE(found.identical);
  EXPECT_EQ(found.largest, 3);
  EXPECT_FALSE(found.within);
  EXPECT_TRUE(found.finite);
}

TEST(Compare, NotANumberIsLargestWhateverComesAfter) {
  const auto found = difference("w", {kNan, 5}, {1, 2}, {.absolute = 100});
  EXPECT_TRUE(std::isnan(found.largest));
  EXPECT_FALSE(found.within);
  EXPECT_FALSE(found.finite);
  EXPECT_TRUE(found.reference_finite);
}

TEST(Compare, ZeroAndMinusZeroDifferByTheirBitsAlone) {
  const auto found = difference("w", {-0.0}, {0.0});
  EXPECT_FALSE(found.identical);
  EXPECT_EQ(found.largest, 0);
  EXPECT_TRUE(found.within);
}

TEST(Compare, EqualInfinitiesAreNoReferenceAndNoDifference) {
  const auto found = difference("w", {kInfinity}, {kInfinity});
  EXPECT_TRUE(found.identical);
  EXPECT_EQ(found.largest, 0);
  EXPECT_FALSE(found.reference_finite);
}

TEST(Compare, ToleranceIsInclusiveAndRelativeToTheReference) {
  EXPECT_TRUE(difference("w", {1.5}, {1}, {.absolute = 0.5}).within);
  EXPECT_FALSE(difference("w", {1.5}, {1}, {.absolute = 0.25}).within);
  EXPECT_TRUE(difference("w", {-96}, {-100}, {.relative = 0.04}).within);
  EXPECT_FALSE(difference("w", {-104}, {-100}, {.relative = 0.03}).within);
  EXPECT_TRUE(difference("w", {105}, {100}, {.absolute = 1, .relative = 0.04}).within);
  EXPECT_FALSE(difference("w", {105.5}, {100}, {.absolute = 1, .relative = 0.04}).within);
  EXPECT_FALSE(difference("w", {1}, {0}, {.relative = 100}).within);
}

TEST(Judge, BitsDecideWhereBitsArePromised) {
  const auto same = check_promise(promise("bit_identical"), {difference("w", {1, 2}, {1, 2})});
  EXPECT_EQ(same.verdict, "held");
  EXPECT_EQ(same.max_abs_difference, 0);
  EXPECT_EQ(same.reason, "");
  const auto other = check_promise(promise("bit_identical"), {difference("w", {-0.0}, {0.0})});
  EXPECT_EQ(other.verdict, "broken");
  EXPECT_EQ(other.max_abs_difference, 0);
  EXPECT_EQ(other.reason, "differs most in w");
}

TEST(Judge, TheToleranceDecidesWhereOneIsPromised) {
  const Tolerance tolerance{.absolute = 1};
  const auto held =
      check_promise(promise("within_tolerance"),
                    {difference("a", {1.5}, {1}, tolerance), difference("b", {3}, {2}, tolerance)});
  EXPECT_EQ(held.verdict, "held");
  EXPECT_EQ(held.max_abs_difference, 1);
  const auto broken =
      check_promise(promise("within_tolerance"),
                    {difference("a", {5}, {1}, tolerance), difference("b", {4}, {2}, tolerance)});
  EXPECT_EQ(broken.verdict, "broken");
  EXPECT_EQ(broken.max_abs_difference, 4);
  EXPECT_EQ(broken.reason, "differs most in a");
}

// The largest difference need not be the one that breaks a relative tolerance.
TEST(Judge, NamesWhatBreaksThePromise) {
  const Tolerance tolerance{.relative = 0.1};
  const auto found = check_promise(
      promise("within_tolerance"),
      {difference("large", {1050}, {1000}, tolerance), difference("small", {2}, {1}, tolerance)});
  EXPECT_EQ(found.verdict, "broken");
  EXPECT_EQ(found.max_abs_difference, 50);
  EXPECT_EQ(found.reason, "differs most in small");
}

TEST(Judge, NotANumberBreaksEveryPromiseWhateverComesAfter) {
  for (const char* what : {"bit_identical", "within_tolerance"}) {
    const Tolerance tolerance{.absolute = 1000};
    const auto found = check_promise(promise(what), {difference("a", {kNan}, {1}, tolerance),
                                                     difference("b", {2}, {1}, tolerance)});
    EXPECT_EQ(found.verdict, "broken");
    EXPECT_TRUE(std::isnan(found.max_abs_difference.value()));
    EXPECT_EQ(found.reason, "values that are infinite or not a number in a");
  }
}

TEST(Judge, AReferenceThatIsNotFiniteTellsNothing) {
  const auto found = check_promise(promise("bit_identical"),
                                   {difference("a", {1}, {1}), difference("b", {kNan}, {kNan})});
  EXPECT_EQ(found.verdict, "not_checked");
  EXPECT_FALSE(found.max_abs_difference.has_value());
  EXPECT_EQ(found.reason,
            "the reference case has values that are infinite or not a number in b: nothing can be "
            "told from it");
}

TEST(Judge, NothingToCompareIsHeld) {
  EXPECT_EQ(check_promise(promise("bit_identical"), {}).verdict, "held");
}

}  // namespace
}  // namespace peakbench::worker
