#include "reports/run/view.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/numbers.h"
#include "records.h"
#include "records/axes.h"
#include "records/setting.h"
#include "reports/analysis/environment.h"
#include "reports/render/words.h"
#include "reports/run/figures.h"
#include "reports/run/group.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;

json view_of(const records::Run& run) { return data_of(make_view({run})); }

// A change that would round to nothing has the digits that tell it from none.
TEST(View, ASmallChangeIsNoZeroWithAColour) {
  const auto percent = [](std::int64_t ours, std::int64_t reference) {
    return delta_view(ours, reference).percent;
  };
  EXPECT_EQ(percent(1'000'010, 1'000'000), "+0.001");
  EXPECT_EQ(percent(30'000'000'512, 30'000'000'000), "0.0") << "below what is shown";
  EXPECT_EQ(percent(999'990, 1'000'000), "\u22120.001");
  EXPECT_EQ(percent(1'000'500, 1'000'000), "+0.1");
  EXPECT_EQ(percent(1'000'000, 1'000'000), "0.0");
  EXPECT_FALSE(delta_view(5, 5).more || delta_view(5, 5).less);
}

TEST(View, OneTableForCasesThatDifferByStrategyOnly) {
  const json view = view_of(golden::emulated_run());
  ASSERT_EQ(view["groups"].size(), 2U);
  EXPECT_FALSE(view["groups"][0]["emulated"]);
  EXPECT_TRUE(view["groups"][1]["emulated"]);
  EXPECT_FALSE(view["groups"][1]["has_throughput"]) << "an emulated card never has one";
  EXPECT_TRUE(view["mixed"]);
}

// The tutorial's first table, each case by two releases of PyTorch.
records::Run run_of_two_releases() {
  auto run = golden::tutorial_run();
  const auto table = records::table_of(run.cases.front().spec);
  std::vector<records::CaseResult> cases;
  for (const auto& one : run.cases) {
    if (records::table_of(one.spec) != table || !one.memory) continue;
    for (const char* release : {"2.11.0", "2.15.0"}) {
      auto& made = cases.emplace_back(one);
      made.spec.torch = release;
      made.spec.id += std::string("/torch-") + release;
      if (made.spec.torch == "2.15.0") made.memory->peak_allocated_bytes -= 1 << 20;
    }
  }
  run.cases = std::move(cases);
  return run;
}

TEST(View, ReleasesAreRowsOfOneTable) {
  const auto run = run_of_two_releases();
  const json view = view_of(run);
  ASSERT_EQ(view["groups"].size(), 1U);
  const auto& rows = view["groups"][0]["rows"];
  ASSERT_EQ(rows.size(), run.cases.size());
  EXPECT_EQ(rows[0]["strategy"], "baseline (PyTorch 2.11.0)");
  EXPECT_EQ(rows[1]["build"], "PyTorch 2.15.0");
  EXPECT_TRUE(rows[0]["is_reference"]);
  EXPECT_FALSE(rows[1]["is_reference"]) << "the reference is one release's";
  EXPECT_EQ(rows[1]["delta"]["bytes"], "−1,048,576");
}

TEST(View, ACaseIsComparedWithTheReleaseBefore) {
  const std::vector runs{run_of_two_releases()};
  const auto group = group_cases(runs).front();
  EXPECT_EQ(build_before(group, *group.cases[0]), nullptr);
  EXPECT_EQ(build_before(group, *group.cases[1]), group.cases[0]);
  EXPECT_EQ(build_before(group, *group.cases[2]), nullptr) << "another stack";
  EXPECT_EQ(build_before(group, *group.cases[3]), group.cases[2]);
}

TEST(View, AProgramsReleasesAreATable) {
  auto run = run_of_two_releases();
  for (auto& one : run.cases) {
    one.spec.kind = records::CaseKind::kProgram;
    one.spec.model = {records::stack_text(one.spec.strategies), json::object()};
    one.spec.strategies.clear();
  }
  const json view = view_of(run);
  EXPECT_EQ(view["groups"].size(), run.cases.size() / 2);
  EXPECT_EQ(view["groups"][0]["rows"][1]["delta"]["bytes"], "−1,048,576");
}

TEST(View, DifferencesAreAgainstTheReference) {
  const json row = view_of(golden::tutorial_run())["groups"][0]["rows"][1];
  EXPECT_EQ(row["delta"]["bytes"], "−1,183,735,712");
  EXPECT_EQ(row["delta"]["percent"], "−19.4");
  EXPECT_TRUE(row["delta"]["less"]);
  EXPECT_EQ(row["time"]["percent"], "+2.5");  // the mean of its rounds
}

TEST(View, WithoutAReferenceThereAreNoDifferences) {
  records::Run run = golden::tutorial_run();
  run.cases[0].status = records::Status::kOutOfMemory;
  run.cases[0].memory.reset();
  const json group = view_of(run)["groups"][0];
  EXPECT_EQ(group["rows"][1]["delta"], false);
  EXPECT_EQ(group["rows"][1]["time"], false);
}

TEST(View, AReferenceThatRanOutOfMemoryIsComparedByWhatItNeeds) {
  records::Run run = golden::tutorial_run();
  const auto peak = run.cases[0].memory->peak_allocated_bytes;
  run.cases[0].status = records::Status::kOutOfMemory;
  run.cases[0].memory.reset();
  run.cases[0].out_of_memory.emplace().needed_allocated_bytes = peak;
  const json before = view_of(golden::tutorial_run())["groups"][0], now = view_of(run)["groups"][0];
  EXPECT_TRUE(now["reference_out"]);
  EXPECT_EQ(now["rows"][1]["delta"], before["rows"][1]["delta"]);
  EXPECT_EQ(now["lowest"]["percent"], before["lowest"]["percent"]);
  EXPECT_TRUE(now["rows"][0]["is_reference"]);
  EXPECT_EQ(now["rows"][1]["time"], false) << "no time is known of it";
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

TEST(View, PublishedFiguresStandBesideTheirBatchAndDtype) {
  records::Run run = golden::tutorial_run();
  run.published[0].batch_size = 8;
  run.published[1].dtype = "bf16";
  run.published[2].batch_size = 1;
  run.published[2].dtype = "fp32";
  const json rows = view_of(run)["groups"][0]["rows"];
  EXPECT_TRUE(rows[0]["published_memory"].empty()) << "of another batch size";
  EXPECT_TRUE(rows[1]["published_memory"].empty()) << "of another dtype";
  EXPECT_EQ(rows[2]["published_memory"].size(), 1U);
  run.published[2].sequence_length = 512;
  EXPECT_TRUE(view_of(run)["groups"][0]["rows"][2]["published_memory"].empty())
      << "of another sequence length";
}

TEST(View, AFailureForWantOfMemorySaysWhatItNeeds) {
  records::Run run = golden::tutorial_run();
  run.cases[8].out_of_memory->needed_bytes = std::int64_t{30} << 30;
  const json row = view_of(run)["groups"][1]["rows"][2];
  EXPECT_EQ(row["needed"]["gib"], "30.000");
  EXPECT_EQ(view_of(golden::tutorial_run())["groups"][1]["rows"][2]["needed"], false);
}

TEST(View, TheReferenceOfTheCheckIsNotMissingOne) {
  records::Run run = golden::tutorial_run();
  run.cases.resize(2);
  for (records::CaseResult& result : run.cases) {
    result.equivalence = records::Equivalence{};
    result.equivalence->promise = "bit_identical";
    result.equivalence->verdict = "not_checked";
    result.equivalence->reason = "a reason";
    result.equivalence->reference_case = run.cases[0].spec.id;
  }
  const json missing = view_of(run)["not_measured"];
  ASSERT_EQ(missing.size(), 1U) << missing;
  EXPECT_EQ(missing[0]["cases"], json::array({run.cases[1].spec.id}));
}

TEST(View, NoLimitIsNoZero) {
  records::Run run = golden::tutorial_run();
  run.settings = {{"memory_limit_bytes", 0}, {"threads", 0}, {"timeout_s", 60}, {"seed", 0}};
  const json settings = view_of(run)["runs"][0]["settings"];
  const auto value = [&](const char* name) {
    for (const json& fact : settings)
      if (fact["name"] == name) return fact["value"].get<std::string>();
    return std::string("missing");
  };
  EXPECT_EQ(value("memory limit"), "none");
  EXPECT_EQ(value("threads"), "default");
  EXPECT_EQ(value("timeout"), "60 s");
  EXPECT_EQ(value("seed"), "0");
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

// baseline, lora, checkpointing and both of them; the middle two were added.
records::Run run_with_ablation() {
  records::Run run = golden::tutorial_run();
  const auto peaks = std::vector<std::int64_t>{1000, 400, 990, 300};
  const std::vector<std::vector<records::Selection>> stacks{
      {{"baseline"}}, {{"lora"}}, {{"checkpointing"}}, {{"lora"}, {"checkpointing"}}};
  std::vector<records::CaseResult> cases;
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    cases.push_back(run.cases[0]);
    cases.back().spec.strategies = stacks[i];
    cases.back().memory->peak_allocated_bytes = peaks[i];
    if (i == 1 || i == 2) cases.back().added_for = records::kAddedForAblation;
  }
  run.cases = cases;
  return run;
}

TEST(Ablation, OfEachPartAloneAndOfTheStackWithoutIt) {
  const json group = view_of(run_with_ablation())["groups"][0];
  ASSERT_EQ(group["ablation"].size(), 1U);
  const json stack = group["ablation"][0];
  EXPECT_EQ(stack["strategy"], "lora+checkpointing");
  EXPECT_EQ(stack["together"]["bytes"], "−700");
  EXPECT_EQ(stack["sum"]["bytes"], "−610");
  EXPECT_EQ(stack["parts"][0]["part"], "lora");
  EXPECT_EQ(stack["parts"][0]["alone"]["bytes"], "−600");
  EXPECT_EQ(stack["parts"][0]["without"]["bytes"], "+690") << "checkpointing alone against both";
  EXPECT_EQ(stack["parts"][1]["alone"]["percent"], "−1.0");
  EXPECT_EQ(stack["parts"][1]["without"]["bytes"], "+100");
}

// A baseline, and one that does a fifth more, most of it again.
records::Run run_with_work() {
  records::Run run = golden::tutorial_run();
  run.cases.resize(2, run.cases[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    records::CaseResult& item = run.cases[i];
    item.spec.strategies = {{i == 0 ? "baseline" : "checkpointing"}};
    item.status = records::Status::kOk;
    item.memory = run.cases[0].memory;
    records::StepWork work;
    work.step = 2;
    work.total.flops = i == 0 ? 10'000'000'000 : 12'000'000'000;
    work.total.recomputed_flops = i == 0 ? 0 : 2'000'000'000;
    work.total.flops_by_precision = {{"fp32", work.total.flops}};
    work.total.read_bytes = work.total.written_bytes = 1 << 30;
    work.phases["forward"].flops = 4'000'000'000;
    work.total.device = records::DeviceWork{.kernel_launches = i == 0 ? 100 : 125};
    if (i == 1) work.total.device->copies_to_host_bytes = 1 << 29;
    work.bound = records::StepBound{.least_step_ns = 1'500'000,
                                    .memory_bytes_per_second = 3'352'000'000'000,
                                    .flops_per_second = {{"fp32", 66'900'000'000'000}}};
    item.work = work;
  }
  return run;
}

TEST(Work, StandsBesideTheReferences) {
  const json work = view_of(run_with_work())["groups"][0]["work"];
  EXPECT_EQ(work["step"], "3");
  EXPECT_EQ(work["rates"], "3,352 GB/s, fp32 66.90 TFLOP/s");
  const json& row = work["rows"][1];
  EXPECT_EQ(work["rows"][0]["costs"], "");
  EXPECT_EQ(work["rows"][0]["is_reference"], true);
  EXPECT_EQ(row["flops"], "12.00 GFLOP");
  EXPECT_EQ(row["flops_percent"], "+20.0");
  EXPECT_EQ(row["recomputed"], "2.000 GFLOP");
  EXPECT_EQ(row["moved_gib"], "2.000");
  EXPECT_EQ(row["launches"], "125");
  EXPECT_EQ(row["least_ms"], "1.50");
  EXPECT_EQ(row["costs"],
            "recomputes 50.0% of the forward's FLOPs; FLOPs +20.0%; kernel launches +25.0%; "
            "copies 0.500 GiB to the host");
}

TEST(Work, WhatIsNotKnownIsEmptyAndNoZero) {
  records::Run run = run_with_work();
  for (auto& item : run.cases) {
    item.work->total.device.reset();
    item.work->bound.reset();
  }
  json work = view_of(run)["groups"][0]["work"];
  EXPECT_EQ(work["has_device"], false);
  EXPECT_EQ(work["has_bound"], false);
  EXPECT_EQ(work["rows"][1]["launches"], "");
  EXPECT_EQ(work["rows"][1]["least_ms"], "");
  for (auto& item : run.cases) item.work.reset();
  EXPECT_EQ(view_of(run)["groups"][0]["has_work"], false);
}

TEST(Ablation, AddedCasesAreNoRows) {
  const json view = view_of(run_with_ablation());
  EXPECT_EQ(view["groups"][0]["rows"].size(), 2U);
  EXPECT_EQ(view["case_count"], "2");
}

TEST(Ablation, WhatDidNotRunIsSaid) {
  records::Run run = run_with_ablation();
  run.cases[1].status = records::Status::kOutOfMemory;
  run.cases[1].memory.reset();
  const json stack = view_of(run)["groups"][0]["ablation"][0];
  EXPECT_EQ(stack["parts"][0]["alone_missing"], "out of memory");
  EXPECT_EQ(stack["parts"][1]["without_missing"], "out of memory");
  EXPECT_EQ(stack["sum"], false);
  run.cases.erase(run.cases.begin() + 1, run.cases.begin() + 3);
  EXPECT_TRUE(view_of(run)["groups"][0]["ablation"].empty()) << "nothing is known of the parts";
}

const json& group_of(const json& view, std::size_t index) { return view["groups"][index]; }

json row_of(const json& group, const std::string& strategy) {
  for (const json& row : group["rows"])
    if (row["strategy"] == strategy) return row;
  return {};
}

TEST(Promises, WhatNobodyCheckedIsClaimed) {
  const json view = view_of(golden::cards_run());
  const json& first = group_of(view, 0);
  const json row = row_of(first, "checkpointing");
  EXPECT_EQ(row["equivalence"]["label"], "bit-identical (claimed)");
  EXPECT_TRUE(row["equivalence"]["not_checked"]);
  EXPECT_EQ(first["lowest"]["strategy"], "offload");
  EXPECT_TRUE(first["lowest"]["claimed"]);
  EXPECT_FALSE(first["fastest"]["claimed"]) << "the baseline claims nothing";
  EXPECT_EQ(first["pareto"]["points"][1]["mark"], "claimed");
  EXPECT_EQ(first["pareto"]["points"][0]["mark"], "");
  EXPECT_TRUE(first["pareto"]["has_claimed"]);
}

TEST(Promises, WhatOthersAreHeldAgainstClaimsNothing) {
  records::Run run = golden::cards_run();
  run.reference = "offload";  // so the baseline has a cell about its training
  const json view = view_of(run);
  const json row = row_of(group_of(view, 0), "baseline");
  EXPECT_EQ(row["equivalence"]["label"], "what others are compared with");
  EXPECT_FALSE(row["equivalence"]["not_checked"]);
}

TEST(Promises, AStackIsHeldAgainstTheProblemThatItTrains) {
  const json view = view_of(golden::cards_run());
  const json held = row_of(group_of(view, 2), "lora+checkpointing")["equivalence"];
  EXPECT_EQ(held["label"], "as lora, bit-identical");
  EXPECT_TRUE(held["held"]);
  EXPECT_TRUE(held["different"]);
  EXPECT_EQ(row_of(group_of(view, 1), "lora+checkpointing")["equivalence"]["label"],
            "as lora, bit-identical (claimed)");
  EXPECT_EQ(row_of(group_of(view, 1), "lora")["equivalence"]["label"], "trains differently");
  EXPECT_TRUE(group_of(view, 2)["lowest"]["different"]) << "than the baseline's";
  EXPECT_EQ(group_of(view, 2)["lowest_same"]["strategy"], "eight-bit");
  EXPECT_EQ(group_of(view, 1)["lowest_same"], false) << "nothing but the reference itself";
}

TEST(Promises, AnUnknownReferenceOfAnotherProblemIsSaid) {
  records::Equivalence equivalence;
  equivalence.promise = "bit_identical";
  equivalence.different_problem = true;
  equivalence.verdict = "not_checked";
  EXPECT_EQ(equivalence_label(equivalence, "a case", ""),
            "trains differently, else bit-identical (claimed)");
}

TEST(Promises, WhatIsBrokenIsNoAnswer) {
  const json view = view_of(golden::cards_run());
  const json& group = group_of(view, 2);
  EXPECT_EQ(group["lowest"]["strategy"], "lora+checkpointing") << "wild needs less";
  EXPECT_EQ(group["fastest"]["strategy"], "lora+checkpointing") << "wild is faster";
  EXPECT_EQ(group["left_out"].size(), 1U);
  EXPECT_EQ(group["left_out"][0]["strategy"], "wild");
  EXPECT_FALSE(row_of(group, "wild")["is_lowest"]);
  for (const json& point : group["pareto"]["points"])
    EXPECT_EQ(point["on_front"], point["strategy"] == "lora+checkpointing") << point;
}

TEST(Promises, NotANumberIsSaid) {
  const json view = view_of(golden::cards_run());
  const json row = row_of(group_of(view, 2), "wild");
  EXPECT_EQ(row["equivalence"]["label"], "not within tolerance (not a number)");
  EXPECT_EQ(row["equivalence"]["max_abs_difference"], "not a number");
  EXPECT_EQ(row["losses"], json::array({"0.6900000", "NaN", "∞"}));
  const json expected{{"strategy", "wild"}, {"what", "not a number"}, {"step", "2"}};
  EXPECT_EQ(group_of(view, 2)["not_finite"], json::array({expected}));
  EXPECT_EQ(group_of(view, 1)["not_finite"], json::array());
}

TEST(Promises, BothTolerancesAreShown) {
  const json view = view_of(golden::cards_run());
  EXPECT_EQ(row_of(group_of(view, 2), "eight-bit")["equivalence"]["tolerance"],
            "1.0e-05 + 1.0e-03 relative");
  records::Equivalence equivalence;
  equivalence.relative_tolerance = 1e-3;
  EXPECT_EQ(tolerance_text(equivalence), "1.0e-03 relative");
  equivalence.tolerance = 0;
  EXPECT_EQ(tolerance_text(equivalence), "1.0e-03 relative");
  equivalence.relative_tolerance.reset();
  EXPECT_EQ(tolerance_text(equivalence), "0");
}

TEST(View, ATimeThatIsNoNumberIsNotDrawn) {
  records::Run run = golden::cards_run();
  run.cases[1].throughput->samples_per_second = std::numeric_limits<double>::infinity();
  EXPECT_EQ(view_of(run)["groups"][0]["pareto"]["points"].size(), 2U);
}

TEST(Spaces, PinnedMemoryStandsBesideTheCards) {
  const json view = view_of(golden::cards_run());
  const json& group = group_of(view, 0);
  ASSERT_EQ(group["beside"].size(), 1U) << "a kilobyte on the host is no column";
  EXPECT_EQ(group["beside"][0]["label"], "pinned");
  EXPECT_EQ(row_of(group, "offload")["beside"][0]["gib"], "5.000");
  EXPECT_EQ(row_of(group, "baseline")["beside"][0]["gib"], "0");
  EXPECT_EQ(row_of(group, "lora+checkpointing")["beside"][0]["gib"], "") << "it did not run";
  EXPECT_EQ(group["lowest"]["beside"], "5.000 GiB pinned host memory");
  EXPECT_EQ(group["pareto"]["points"][1]["beside"], "5.000 GiB pinned host memory");
  EXPECT_FALSE(group_of(view, 1)["has_beside"]);
  EXPECT_EQ(group["outcome_columns"], "5") << "peak, difference, reserved, pinned, bars";
  EXPECT_EQ(group_of(view, 2)["outcome_columns"], "3");
}

TEST(Spaces, TheOwnOneIsNamedOrFollowsFromTheDevice) {
  records::Run run = golden::cards_run();
  EXPECT_EQ(own_space(run.cases[4]), "cuda:1");
  run.cases[4].memory->space = "";
  EXPECT_EQ(own_space(run.cases[4]), "cuda:1");
  EXPECT_TRUE(spaces_beside(run.cases[4]).empty());
  records::CaseResult emulated = golden::emulated_run().cases[3];
  EXPECT_EQ(own_space(emulated), "cuda:0");
  emulated.memory->space = "cuda:1";
  EXPECT_EQ(spaces_beside(emulated), std::set<std::string>{"cuda:0"});
  emulated.memory->spaces = {{"cuda:1", {1000, 1000, {}}}, {"pinned", {9, 9, {}}}};
  emulated.memory->peak_allocated_bytes = 1000;
  EXPECT_TRUE(spaces_beside(emulated).empty());
  emulated.memory->spaces["pinned"].peak_allocated_bytes = 10;
  EXPECT_EQ(spaces_beside(emulated), std::set<std::string>{"pinned"}) << "a hundredth of the peak";
}

// The reason is that of the workspace with the least room, in whichever row; nothing is claimed of
// the others. A row passes the next one when a workspace exceeds its room and their difference.
TEST(Verdicts, OfRowsThatLackWorkspacesTheTightestIsTold) {
  records::Run run = golden::emulated_run();
  std::vector<records::CaseResult*> rows;
  for (auto& result : run.cases)
    if (result.emulation && result.memory) rows.push_back(&result);
  ASSERT_EQ(rows.size(), 2U);
  const auto bound = [](records::CaseResult& result, std::int64_t room, const std::string& reason) {
    records::Verdict verdict;
    verdict.kind = records::VerdictKind::lower_bound;
    verdict.workspace_room_bytes = room;
    verdict.reasons = {reason, "another"};
    result.emulation->verdict = verdict;
  };
  bound(*rows[0], 3 << 20, "the reason of the baseline");
  bound(*rows[1], 2 << 20, "the reason of fused-in-backward");
  const auto notes = [&] { return view_of(run)["groups"][1]["verdict_notes"]; };
  ASSERT_EQ(notes().size(), 1U);
  const std::string text = notes()[0]["text"];
  EXPECT_EQ(text.find("a card takes this much or more; the reason of fused-in-backward."), 0U)
      << text;
  EXPECT_NE(text.find("Tightest case: fused-in-backward."), std::string::npos) << text;
  EXPECT_EQ(text.find("other"), std::string::npos) << text;
  EXPECT_EQ(notes()[0]["strategies"], "baseline, fused-in-backward");
  const auto more = rows[0]->memory->peak_allocated_bytes - rows[1]->memory->peak_allocated_bytes;
  EXPECT_NE(text.find("holds unless one exceeds " +
                      size_text(static_cast<std::uint64_t>(more + (2 << 20))) + "."),
            std::string::npos)
      << text;
  // Nobody can say so where a row is off by nobody knows how much.
  rows[0]->emulation->verdict->workspace_room_bytes.reset();
  for (const auto& note : notes())
    EXPECT_EQ(note["text"].get<std::string>().find("The order"), std::string::npos);
  rows[0]->emulation->verdict->workspace_room_bytes = 3 << 20;
  auto third = *rows[1];
  third.spec.strategies = {{"lora"}};
  third.spec.id += "/third";
  run.cases.push_back(third);
  EXPECT_EQ(notes()[0]["strategies"], "every row");
}

TEST(Cards, EachGroupHasItsOwn) {
  const json view = view_of(golden::cards_run());
  EXPECT_EQ(group_of(view, 0)["cards"], "NVIDIA A100-SXM4-40GB, 39.393 GiB");
  EXPECT_EQ(group_of(view, 1)["cards"], "NVIDIA L4, 21.988 GiB");
  EXPECT_EQ(group_of(view, 2)["cards"], "");
  const json& devices = view["runs"][0]["devices"];
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0]["device"], "cuda:0");
  EXPECT_EQ(devices[1]["device"], "cuda:1");
  EXPECT_EQ(devices[1]["facts"][0]["value"], "NVIDIA L4");
}

TEST(Cards, OlderRunsSayItForAllTheirCases) {
  records::Run run = golden::cards_run();
  for (records::CaseResult& result : run.cases) result.environment = json::object();
  run.environment["card"] = "NVIDIA L4";
  const json view = view_of(run);
  EXPECT_EQ(group_of(view, 0)["cards"], "NVIDIA L4");
  EXPECT_EQ(group_of(view, 2)["cards"], "") << "the processor is no card";
}

TEST(View, NoEffectIsAnOutcome) {
  const json view = view_of(golden::cards_run());
  const json row = row_of(group_of(view, 0), "lora+checkpointing");
  EXPECT_TRUE(row["failed"]);
  EXPECT_EQ(row["status"], "no_effect");
  EXPECT_EQ(row["status_label"], "no effect");
}

TEST(View, WhatTheMachineFailedIsNotMeasured) {
  records::Run run = golden::cards_run();
  records::CaseResult& failed = run.cases[0];
  failed.status = records::Status::kHostFailure;
  failed.reason = "the disk is full";
  const json view = view_of(run);
  const json row = row_of(group_of(view, 0), records::stack_text(failed.spec.strategies));
  EXPECT_EQ(row["status"], "host_failure");
  EXPECT_EQ(row["status_label"], "not measured");
  const json& listed = view["not_measured"];
  const bool said = std::any_of(listed.begin(), listed.end(), [](const json& one) {
    return one["what"] == "The case" && one["reason"] == "the disk is full";
  });
  EXPECT_TRUE(said) << listed;
}

TEST(View, AReplayedStepIsNeverTheLowest) {
  records::Run run = golden::tutorial_run();
  records::CaseResult& replayed = run.cases[1];
  replayed.memory->peak_allocated_bytes = 1;
  replayed.memory->replays_steps = true;
  const json group = view_of(run)["groups"][0];
  EXPECT_NE(group["lowest"]["strategy"], records::stack_text(replayed.spec.strategies));
  EXPECT_EQ(group["rows"][1]["delta"], false);
}

TEST(View, ABrokenPromiseAndMemoryNotSeenAreToldWithTheirReasons) {
  records::Run run = golden::tutorial_run();
  records::CaseResult& one = run.cases[1];
  const std::string name = records::stack_text(one.spec.strategies);
  EXPECT_EQ(view_of(run)["groups"][0]["unseen_memory"], json::array());
  one.equivalence.emplace();
  one.equivalence->promise = "bit_identical";
  one.equivalence->verdict = "broken";
  one.equivalence->reason = "half of the parameters";
  one.memory->period = {"lisa", 21};
  const json group = view_of(run)["groups"][0];
  const json expected{{"strategy", name}, {"reason", "half of the parameters"}};
  EXPECT_EQ(group["broken_promises"][0], expected);
  EXPECT_EQ(group["unseen_memory"],
            json::array({{{"strategy", name}, {"by", "lisa"}, {"period", "21"}, {"steps", "3"}}}));
}

// Planted: all of a case is the same on every rank, half of it, nothing.
TEST(View, MoreRanksHelpForWhatIsSharded) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  const auto said = [](std::int64_t kept, std::int64_t sharded) {
    records::Run run = golden::tutorial_run();
    run.cases.resize(2);
    for (auto& one : run.cases) {
      one.spec.strategies = {{"fsdp", json::object()}};
      one.spec.ranks = &one == &run.cases[0] ? 8 : 4;
      auto& memory = *one.memory;
      memory.at_peak = {{"activation", kept}, {"parameter", sharded / *one.spec.ranks}};
      memory.peak_allocated_bytes = kept + sharded / *one.spec.ranks;
    }
    return view_of(run)["groups"][0]["more_ranks"];
  };
  const auto one = [](const char* text) {
    return json::array({{{"strategy", "fsdp"}, {"text", text}}});
  };
  EXPECT_EQ(said(2 * kGiB, 0), one("2.000 GiB of the 2.000 GiB on 8 ranks do not shrink with more "
                                   "ranks (2.000 GiB activation)"));
  EXPECT_EQ(said(kGiB, 8 * kGiB), one("1.000 GiB of the 2.000 GiB on 8 ranks do not shrink with "
                                      "more ranks (1.000 GiB activation)"));
  EXPECT_EQ(said(0, 8 * kGiB), one("nearly all of the 1.000 GiB on 8 ranks shrink with more "
                                   "ranks"));
}

TEST(View, RanksAreSideBySide) {
  records::Run run = golden::tutorial_run();
  run.cases.resize(1);
  auto& one = run.cases[0];
  one.spec.strategies = {{"fsdp", json::object()}};
  one.spec.ranks = 8;
  one.spec.global_batch_size = 16;
  one.memory->at_peak["communication"] = std::int64_t{1} << 30;
  one.ranks = {{0, one.memory, "trace.sqlite", {{"ncclAllGather", 3, std::int64_t{3} << 30}}},
               {7, one.memory, "trace.7.sqlite", {{"ncclSend", 1, std::nullopt}}}};
  auto& last = *one.ranks[1].memory;
  last.peak_allocated_bytes -= std::int64_t{2} << 30;
  last.at_peak["parameter"] -= std::int64_t{2} << 30;
  last.at_peak.erase("communication");
  const json ranks = view_of(run)["groups"][0]["ranks"];
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0]["strategy"], "fsdp (8 ranks)");
  EXPECT_EQ(ranks[0]["global_batch"], "16");
  EXPECT_EQ(ranks[0]["is_largest"], true);
  EXPECT_EQ(ranks[0]["difference"], "");
  EXPECT_EQ(ranks[0]["communication_gib"], "1.000");
  EXPECT_EQ(ranks[0]["nccl"], "3 ncclAllGather of 3.000 GiB");
  EXPECT_EQ(ranks[1]["rank"], "7");
  EXPECT_EQ(ranks[1]["is_largest"], false);
  EXPECT_EQ(ranks[1]["difference"], "\u22122.000 GiB parameter");
  EXPECT_EQ(ranks[1]["communication_gib"], "0");
  EXPECT_EQ(ranks[1]["nccl"], "1 ncclSend");
}

TEST(View, TicksAreRound) {
  const auto ticks = ticks_view(0, 5.67, 5);
  ASSERT_EQ(ticks.size(), 3U);
  EXPECT_EQ(ticks[0].label, "0");
  EXPECT_EQ(ticks[1].label, "2");
  EXPECT_EQ(ticks_view(0.39, 0.44, 5)[0].label, "0.39");
}

}  // namespace
}  // namespace peakbench::reports
