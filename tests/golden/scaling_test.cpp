// How the peak grows with the batch size or the sequence length.
#include <gtest/gtest.h>

#include "records.h"
#include "reports/run/view.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using records::CaseResult;

constexpr std::int64_t kMiB = 1 << 20;

// The first case of the tutorial's run, with each of the sizes and its peak in MiB (0: it ran out
// of memory).
records::Run grown(const std::vector<std::pair<std::int64_t, std::int64_t>>& peaks) {
  records::Run run = golden::tutorial_run();
  CaseResult first = run.cases.front();
  run.cases.clear();
  for (const auto& [batch, mib] : peaks) {
    CaseResult result = first;
    result.spec.batch_size = batch;
    result.memory->peak_allocated_bytes = mib * kMiB;
    result.memory->peak_phase = "backward";
    if (mib == 0) {
      result.status = records::Status::kOutOfMemory;
      result.memory.reset();
    }
    run.cases.push_back(result);
  }
  return run;
}

json scaling_of(const records::Run& run) { return data_of(make_view({run}))["scaling"]; }

TEST(Scaling, TheLastStepSaysWhatASampleCosts) {
  const json table = scaling_of(grown({{4, 30}, {1, 10}, {2, 10}, {8, 70}})).at(0);
  EXPECT_EQ(table["axis"], "batch size");
  EXPECT_EQ(table["unit"], "sample");
  EXPECT_EQ(table["sizes"], json({"1", "2", "4", "8"}));
  const json row = table["rows"].at(0);
  EXPECT_EQ(row["mib_per_unit"], "10.00");
  EXPECT_EQ(row["linear_from"], "2") << "below it the peak does not grow";
  EXPECT_FALSE(row["bends"]);
}

TEST(Scaling, WhatIsNotOnALineIsSaid) {
  const json row = scaling_of(grown({{1, 10}, {2, 20}, {4, 50}}))[0]["rows"][0];
  EXPECT_EQ(row["mib_per_unit"], "") << "no slope of a curve";
  EXPECT_EQ(row["linear_from"], "");
  EXPECT_TRUE(row["bends"]);
}

TEST(Scaling, TwoSizesAreNoLine) {
  const json row = scaling_of(grown({{1, 10}, {3, 20}}))[0]["rows"][0];
  EXPECT_EQ(row["mib_per_unit"], "");
  EXPECT_EQ(row["linear_from"], "");
  EXPECT_TRUE(row["bends"]);
}

TEST(Scaling, TheOptimizerStepHasNoCostOfASample) {
  records::Run run = grown({{1, 10}, {2, 11}, {4, 13}});
  for (CaseResult& result : run.cases) result.memory->peak_phase = "optimizer_step";
  const json row = scaling_of(run)[0]["rows"][0];
  EXPECT_EQ(row["mib_per_unit"], "");
  EXPECT_TRUE(row["bends"]);
}

TEST(Scaling, CasesWithoutAPeakSayWhy) {
  const json row = scaling_of(grown({{1, 10}, {2, 20}, {4, 40}, {8, 0}}))[0]["rows"][0];
  EXPECT_EQ(row["peaks"][3]["status"], "out of memory");
  EXPECT_EQ(row["peaks"][3]["gib"], "");
  EXPECT_EQ(row["mib_per_unit"], "10.00");
  EXPECT_EQ(row["linear_from"], "1");
}

TEST(Scaling, ALanguageModelIsCountedByTokens) {
  records::Run run = grown({{1, 10}, {2, 20}, {4, 40}});
  for (CaseResult& result : run.cases) result.spec.sequence_length = 16;
  for (const std::int64_t times : {2, 3}) {
    CaseResult longer = run.cases.front();
    longer.spec.sequence_length = 16 * times;
    longer.memory->peak_allocated_bytes = (10 + 16 * (times - 1)) * kMiB;
    run.cases.push_back(longer);
  }
  const json tables = scaling_of(run);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0]["unit"], "token");
  EXPECT_EQ(tables[0]["rows"][0]["mib_per_unit"], "0.6250");
  EXPECT_EQ(tables[1]["axis"], "sequence length");
  EXPECT_EQ(tables[1]["rows"][0]["mib_per_unit"], "1.000");
}

TEST(Scaling, OneSizeIsNoTable) {
  EXPECT_EQ(scaling_of(grown({{1, 10}})).size(), 0U);
  EXPECT_EQ(scaling_of(golden::tutorial_run()).size(), 0U);
}

}  // namespace
}  // namespace peakbench::reports
