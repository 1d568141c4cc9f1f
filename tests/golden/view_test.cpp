#include "reports/view.h"

#include <gtest/gtest.h>

#include "records.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;

json view_of(const result::Run& run) { return make_view({run}); }

TEST(View, OneTableForCasesThatDifferByStrategyOnly) {
  const json view = view_of(golden::emulated_run());
  ASSERT_EQ(view["groups"].size(), 2U);
  EXPECT_FALSE(view["groups"][0]["emulated"]);
  EXPECT_TRUE(view["groups"][1]["emulated"]);
  EXPECT_FALSE(view["groups"][1]["has_throughput"]) << "an emulated card never has one";
  EXPECT_TRUE(view["mixed"]);
}

TEST(View, DifferencesAreAgainstTheReference) {
  const json row = view_of(golden::tutorial_run())["groups"][0]["rows"][1];
  EXPECT_EQ(row["delta"]["bytes"], "−1,183,735,712");
  EXPECT_EQ(row["delta"]["percent"], "−19.4");
  EXPECT_TRUE(row["delta"]["less"]);
  EXPECT_EQ(row["step_percent"], "+1.7");
}

TEST(View, WithoutAReferenceThereAreNoDifferences) {
  result::Run run = golden::tutorial_run();
  run.cases[0].status = result::Status::kOutOfMemory;
  run.cases[0].memory.reset();
  const json group = view_of(run)["groups"][0];
  EXPECT_FALSE(group["has_reference"]);
  EXPECT_EQ(group["rows"][1]["delta"], false);
  EXPECT_EQ(group["rows"][1]["step_percent"], "");
}

TEST(View, SegmentsAreTheWholeBar) {
  const json row = view_of(golden::tutorial_run())["groups"][0]["rows"][2];
  double width = 0;
  for (const json& segment : row["segments"])
    width += std::stod(segment["width"].get<std::string>());
  EXPECT_NEAR(width, std::stod(row["bar"].get<std::string>()), 5e-4);
}

TEST(View, PublishedFiguresAreConvertedWithTheOriginal) {
  const json figure =
      view_of(golden::tutorial_run())["groups"][0]["rows"][1]["published_memory"][0];
  EXPECT_EQ(figure["original"], "4.8 GB");
  EXPECT_EQ(figure["gib"], "4.470");
  EXPECT_EQ(figure["off_percent"], "+2.2");
}

TEST(View, TheLeastMemoryWithTheReferencesTrainingIsNamed) {
  const json group = view_of(golden::tutorial_run())["groups"][0];
  EXPECT_EQ(group["lowest"]["strategy"], "lora,rank=8");
  EXPECT_TRUE(group["lowest"]["different"]);
  EXPECT_EQ(group["lowest_same"]["strategy"], "fused-in-backward")
      << "the broken one may not count";
}

TEST(View, TheFrontHoldsWhatNothingBeats) {
  const json pareto = view_of(golden::tutorial_run())["groups"][0]["pareto"];
  for (const json& point : pareto["points"])
    EXPECT_EQ(point["on_front"], point["number"] == "4") << point;
}

TEST(View, FailedCasesAreRowsWithTheirReason) {
  const json rows = view_of(golden::tutorial_run())["groups"][1]["rows"];
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[2]["status"], "out_of_memory");
  EXPECT_EQ(rows[2]["oom_facts"][0]["value"], "0.508 GiB");
  EXPECT_EQ(rows[3]["status_label"], "timeout");
}

TEST(View, TicksAreRound) {
  const json ticks = ticks_view(0, 5.67, 5);
  ASSERT_EQ(ticks.size(), 3U);
  EXPECT_EQ(ticks[0]["label"], "0");
  EXPECT_EQ(ticks[1]["label"], "2");
  EXPECT_EQ(ticks_view(0.39, 0.44, 5)[0]["label"], "0.39");
}

}  // namespace
}  // namespace peakbench::reports
