// What pairs of two builds say, as records, JSON and text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "files/own_file.h"
#include "reports/ab/ab.h"
#include "support/scratch.h"

namespace peakbench::ab {
namespace {

using namespace peakbench::testing;
using statistics::Direction;
using ::testing::HasSubstr;
using ::testing::Not;

// Six pairs, BASE first in every second one.
result::AbCase paired(std::int64_t base_ns, std::int64_t now_ns) {
  result::AbCase one;
  one.id = one.new_id = "m/baseline/cpu/fp32/b1";
  for (int i = 0; i < 6; ++i)
    one.pairs.push_back({i % 2 == 0, {base_ns, base_ns, 9 * base_ns}, {now_ns, now_ns, now_ns}});
  return one;
}

result::AbRun run_of(std::vector<result::AbCase> cases) {
  result::AbRun run;
  run.base = "build/main";
  run.now = "build/change";
  run.pairs = 6;
  run.cases = std::move(cases);
  return run;
}

constexpr double kMargin = 0.02, kFalseAlarms = 0.01;

TEST(AbVerdict, IsOfTheRatioOfMedians) {
  const auto judged =
      judge(run_of({paired(2'000'000, 2'100'000), paired(2'100'000, 2'000'000), paired(5, 5), {}}),
            kMargin, kFalseAlarms);
  ASSERT_EQ(judged.differences.size(), 4U);
  EXPECT_EQ(judged.differences[0].direction, Direction::kWorse);
  EXPECT_NEAR(judged.differences[0].ratio, 1.05, 1e-9);
  EXPECT_EQ(judged.differences[1].direction, Direction::kBetter);
  EXPECT_EQ(judged.differences[2].direction, Direction::kSame);
  EXPECT_EQ(judged.differences[3].direction, Direction::kUnknown);
}

TEST(AbVerdict, JsonHasTheVerdictBesideItsPairs) {
  const auto json = to_json(judge(run_of({paired(2'000'000, 2'100'000)}), kMargin, kFalseAlarms));
  EXPECT_EQ(json["new"], "build/change");
  EXPECT_EQ(json["margin"], kMargin);
  const auto& one = json["cases"][0];
  EXPECT_EQ(one["verdict"], "worse");
  EXPECT_EQ(one["samples"], 6);
  EXPECT_EQ(one["pairs"][1]["first"], "new");
  EXPECT_EQ(one["pairs"][1]["base_median_ns"], 2'000'000);
}

TEST(AbVerdict, TextNamesTheCaseItsMediansAndItsProblem) {
  auto failed = result::AbCase{"m/a/cpu/fp32/b1", "m/b/cpu/fp32/b1", {}, "NEW: crashed: \x1b[2J"};
  const auto text =
      to_text(judge(run_of({paired(2'000'000, 2'100'000), failed}), kMargin, kFalseAlarms), 200);
  EXPECT_THAT(text, HasSubstr("median step 2.000 -> 2.100 ms"));
  EXPECT_THAT(text, HasSubstr("worse: +5.0% (+5.0% to +5.0%), 6 pairs"));
  EXPECT_THAT(text, HasSubstr("m/b/cpu/fp32/b1 against m/a/cpu/fp32/b1"));
  EXPECT_THAT(text, HasSubstr("NEW: crashed"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("in 1% of cases; within 2% either way"));
}

TEST(AbVerdict, IsWrittenAsAFileOfOurs) {
  const ScratchFolder scratch;
  const auto judged = judge(run_of({paired(4, 4)}), kMargin, kFalseAlarms);
  write(judged, scratch.path());
  EXPECT_TRUE(files::is_own_file(scratch / result::kAbFile));
  auto json = nlohmann::ordered_json::parse(read_text(scratch / result::kAbFile));
  json.erase("written_by");
  EXPECT_EQ(json, to_json(judged));
}

}  // namespace
}  // namespace peakbench::ab
