// What gradients say of a promise beside the reference's: pure.
#include <gtest/gtest.h>

#include "launch/equivalence_check.h"

namespace peakbench::launch {
namespace {

records::CaseResult case_without(std::vector<std::string> names) {
  records::CaseResult made;
  made.equivalence = records::Equivalence{};
  made.equivalence->promise = "bit_identical";
  made.equivalence->verdict = "not_checked";
  made.equivalence->without_gradient = std::move(names);
  return made;
}

TEST(Gradients, NamesTheFirstThatLackOne) {
  auto one = case_without({"unused", "a", "b", "c", "d"});
  EXPECT_TRUE(compare_gradients(one, case_without({"unused"})));
  EXPECT_EQ(one.equivalence->verdict, "broken");
  EXPECT_EQ(one.equivalence->reason,
            "some step gives no gradient to a, b, c and 1 more; in the reference case each does");
}

TEST(Gradients, OneThatTheReferenceLacksIsADifferenceToo) {
  auto one = case_without({});
  EXPECT_TRUE(compare_gradients(one, case_without({"unused"})));
  EXPECT_EQ(one.equivalence->reason,
            "each step gives a gradient to unused; in the reference case some does not");
}

TEST(Gradients, TheSameAreNoDifference) {
  auto one = case_without({"unused"});
  EXPECT_FALSE(compare_gradients(one, case_without({"unused"})));
  EXPECT_EQ(one.equivalence->verdict, "not_checked");
}

TEST(Gradients, SayNothingOfAStrategyThatTrainsOtherwiseNorOfTheSameBits) {
  auto one = case_without({"a"});
  one.equivalence->promise = "different_problem";
  EXPECT_FALSE(compare_gradients(one, case_without({})));
  one = case_without({"a"});
  one.equivalence->verdict = "held";
  EXPECT_FALSE(compare_gradients(one, case_without({})));
  one.equivalence->promise = "within_tolerance";  // which values keep that hardly move
  EXPECT_TRUE(compare_gradients(one, case_without({})));
}

TEST(Gradients, SayNothingWhereTheHostReadUnknownValuesOrACaseFailed) {
  auto one = case_without({"expert"});
  one.emulation = records::Emulation{};
  one.emulation->read_backs.push_back({{"bytes", 8}});
  EXPECT_FALSE(compare_gradients(one, case_without({})));
  auto failed = case_without({});
  failed.status = records::Status::kOutOfMemory;
  one = case_without({"a"});
  EXPECT_FALSE(compare_gradients(one, failed));
}

}  // namespace
}  // namespace peakbench::launch
