// What reports make of traces: from fake traces whose course is known.
#include <gtest/gtest.h>

#include "fake_trace.h"
#include "files.h"
#include "records.h"
#include "reports/run/report.h"
#include "reports/run/trace_data.h"
#include "reports/run/trace_view.h"
#include "reports/run/view.h"
#include "trace/maxima.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::reports {
namespace {

namespace fs = std::filesystem;
using golden::fake_trace;
using golden::FakeTraining;
using golden::TemporaryFolder;
using nlohmann::json;

ReportOptions options() {
  ReportOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  options.template_directory = PEAKBENCH_GOLDEN "/plain";
  return options;
}

FakeTraining single() {
  FakeTraining training;
  training.foreach = false;
  return training;
}

// Two cases with their traces in `folder`.
records::Run run_with_traces(const TemporaryFolder& folder) {
  records::Run run = golden::tutorial_run();
  run.cases.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    const trace::Trace trace = fake_trace(i == 0 ? FakeTraining{} : single());
    const std::string path = std::to_string(i) + ".sqlite";
    trace::write_trace(trace, folder / path);
    run.cases[i].memory = trace::summarise(trace);
    run.cases[i].ranks = {{0, run.cases[i].memory, path}};
  }
  return run;
}

json rows_of(const records::Run& run, const std::string& folder) {
  const std::vector<records::Run> runs{run};
  return data_of(make_view(runs, read_anatomies(runs, {folder}, true)))["groups"][0]["rows"];
}

TEST(TraceView, ARowTellsItsCourse) {
  const TemporaryFolder folder;
  const json rows = rows_of(run_with_traces(folder), folder.string());
  EXPECT_EQ(rows[0]["timeline"]["bands"].size(), 10U) << "build, then three phases a step";
  EXPECT_EQ(rows[0]["timeline"]["peak_y"], "0") << "the widest bar touches the top";
  EXPECT_FALSE(rows[0]["data"].get<std::string>().empty());
  EXPECT_EQ(rows[0]["waterfall"], false) << "the reference has nothing to be compared with";
  EXPECT_NE(rows[1]["why"].get<std::string>().find("foreach-off"), std::string::npos);
}

TEST(TraceView, ACaseWithoutABarIsDrawnToTheSameScale) {
  const TemporaryFolder folder;
  records::Run run = run_with_traces(folder);
  run.cases[0].status = records::Status::kOutOfMemory;  // the higher one
  run.cases[0].memory.reset();
  const json rows = rows_of(run, folder.string());
  EXPECT_EQ(rows[0]["timeline"]["peak_y"], "0") << "it touches the top, and no more";
  EXPECT_GT(std::stod(rows[1]["timeline"]["peak_y"].get<std::string>()), 100);
}

TEST(TraceView, TheLegendHasWhatIsInTheTimelinesOnly) {
  const TemporaryFolder folder;
  const std::vector<records::Run> runs{run_with_traces(folder)};
  std::vector<records::Run> failed = runs;
  for (records::CaseResult& result : failed[0].cases) {
    result.status = records::Status::kOutOfMemory;
    result.memory.reset();
  }
  const auto count = [&](const std::vector<records::Run>& some) {
    const auto view = make_view(some, read_anatomies(some, {folder.string()}, false));
    const json group = data_of(view.groups.at(0));
    EXPECT_EQ(group["has_legend"], !group["categories"].empty());
    return group["categories"].size();
  };
  EXPECT_GE(count(failed), 4U) << "no case has a bar, the timelines are coloured";
  EXPECT_GE(count(runs), count(failed));
}

TEST(TraceView, TheWaterfallEndsAtThePeak) {
  const TemporaryFolder folder;
  const json fall = rows_of(run_with_traces(folder), folder.string())[1]["waterfall"];
  ASSERT_EQ(fall["steps"].size(), 1U) << fall;
  EXPECT_EQ(fall["steps"][0]["category"], "temporary");
  EXPECT_EQ(fall["steps"][0]["bytes"], "−201,326,592") << "three of four layers' temporaries";
  EXPECT_TRUE(fall["steps"][0]["less"]);
}

TEST(TraceView, AliveSharesAreOfThePeak) {
  const TemporaryFolder folder;
  const json alive = rows_of(run_with_traces(folder), folder.string())[0]["alive"];
  EXPECT_EQ(alive["tree"][0]["depth"], "0");
  EXPECT_EQ(alive["largest"].size(), 12U);
  EXPECT_NE(alive["largest"][0]["name"].get<std::string>().find("encoder.layers."),
            std::string::npos);
}

// Rows folded by category and layer add up to the peak, and so do the sums of categories.
TEST(TraceView, WhatIsFoldedSumsToThePeak) {
  const trace::Trace trace = fake_trace({});
  const auto lifetimes = trace::lifetimes(trace);
  const auto peak = trace::find_peak(trace, lifetimes);
  std::int64_t rows = 0, categories = 0;
  bool has_a_pattern = false;
  for (const auto& row : alive_view(trace, lifetimes, peak.event).folded) {
    std::string digits = row.bytes;
    std::erase(digits, ',');
    (row.is_category ? categories : rows) += std::stoll(digits);
    has_a_pattern = has_a_pattern || row.text.find('*') != std::string::npos;
  }
  EXPECT_EQ(rows, peak.allocated_bytes);
  EXPECT_EQ(categories, peak.allocated_bytes);
  EXPECT_TRUE(has_a_pattern);
}

TEST(TraceView, AMissingTraceLeavesANote) {
  const TemporaryFolder folder;
  const records::Run run = run_with_traces(folder);
  fs::remove(folder / "1.sqlite");
  const json rows = rows_of(run, folder.string());
  EXPECT_NE(rows[1]["trace_note"].get<std::string>().find("1.sqlite"), std::string::npos);
  EXPECT_EQ(rows[1]["timeline"], false);
  EXPECT_TRUE(rows[0]["timeline"].is_object());
  const auto files = render({run}, {folder.string()}, options());
  EXPECT_NE(files.at("report.md").find("**Timeline** of 1 case"), std::string::npos);
}

TEST(TraceView, ABrokenTraceLeavesANote) {
  const TemporaryFolder folder;
  const records::Run run = run_with_traces(folder);
  golden::write_text(folder / "1.sqlite", "not a database");
  EXPECT_FALSE(rows_of(run, folder.string())[1]["trace_note"].get<std::string>().empty());
}

TEST(TraceView, ATraceOfAnotherRunIsNotShown) {
  const TemporaryFolder folder;
  const records::Run run = run_with_traces(folder);
  fs::copy_file(folder / "0.sqlite", folder / "1.sqlite", fs::copy_options::overwrite_existing);
  const json rows = rows_of(run, folder.string());
  EXPECT_NE(rows[1]["trace_note"].get<std::string>().find("not of the same run"),
            std::string::npos);
  EXPECT_EQ(rows[1]["why"], "");
}

TEST(TraceView, AnEmptyTraceIsNoTimeline) {
  trace::Trace trace;
  trace.device = "cpu";
  trace.spaces = {"cpu"};
  const CaseAnatomy anatomy = analyse(trace, true, true);
  EXPECT_FALSE(timeline_view(anatomy, 1));
}

TEST(TraceData, IsBase64) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("a"), "YQ==");
  EXPECT_EQ(base64("ab"), "YWI=");
  EXPECT_EQ(base64("abc\xff"), "YWJj/w==");
}

TEST(TraceData, TheOutlineIsSmall) {
  FakeTraining training;
  training.temporaries = 2000;
  const trace::Trace trace = fake_trace(training);
  const auto lifetimes = trace::lifetimes(trace);
  const std::string whole = pack_trace(trace, lifetimes, 0, true),
                    outline = pack_trace(trace, lifetimes, 0, false);
  EXPECT_LT(outline.size(), whole.size());
  EXPECT_LT(whole.size(), trace.events.size() * 8) << "at most eight characters an event";
}

}  // namespace
}  // namespace peakbench::reports
