// What a report shows of fit.json: the grid, and nothing of another run's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "base/file.h"
#include "records.h"
#include "records/run.h"
#include "reports/run/report.h"
#include "reports/run/view_sizes.h"
#include "support/scratch.h"

namespace peakbench::reports {
namespace {

using nlohmann::json;
using peakbench::testing::ScratchFolder;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kGiB = 1 << 30;

json cell(const char* row, const char* card, const char* state) {
  return {{"row", row}, {"card", card}, {"state", state}, {"card_memory_bytes", 40 * kGiB}};
}

json fit_file(const std::string& run_created) {
  auto fits = cell("lora", "a100-40gb", "fits");
  fits["largest"] = 1234;
  fits["id"] = golden::emulated_run().cases.front().spec.id;
  fits["memory"] = {{"least_memory_bytes", 38 * kGiB}, {"left_bytes", 2 * kGiB}};
  fits["fails"] = {{"value", 1235}, {"reason", "asked for <2 GiB>"}};
  auto needs = cell("lora", "t4-16gb", "does_not_fit");
  needs["card_memory_bytes"] = 15 * kGiB;
  needs["memory"] = {{"peak_reserved_bytes", 18 * kGiB}, {"left_bytes", -3 * kGiB}};
  auto unknown = cell("baseline", "t4-16gb", "unknown");
  unknown["reason"] = "it ended crashed";
  return {{"answer", "m on a100-40gb: batch size 1,234.\nm on t4-16gb: not even batch size 1.\n"},
          {"label", "batch size"},
          {"run_created", run_created},
          {"cells", {fits, needs, unknown}}};
}

struct Folder {
  explicit Folder(const json& fit) : run(golden::emulated_run()) {
    files::write_json_file(scratch / records::kFitFile, fit);
  }
  std::map<std::string, std::string> rendered() const {
    ReportOptions options;
    options.builtin_template_directory = PEAKBENCH_TEMPLATES;
    options.formats = {"html", "markdown"};
    return render({run}, {scratch.path()}, options);
  }
  ScratchFolder scratch;
  records::Run run;
};

TEST(FitGrid, IsRowsOfStacksAndColumnsOfCards) {
  const Folder folder(fit_file(""));
  const auto grid = records::read_fit_grid(folder.scratch.path());
  ASSERT_TRUE(grid);
  const json view = data_of(fit_view(*grid, 0, "").fields());
  EXPECT_EQ(view["answers"].size(), 2U);
  ASSERT_EQ(view["cards"].size(), 2U);
  EXPECT_EQ(view["cards"][1]["gib"], "15.000");
  ASSERT_EQ(view["rows"].size(), 2U);
  const auto& lora = view["rows"][0]["cells"];
  EXPECT_EQ(lora[0]["largest"], "1,234");
  EXPECT_EQ(lora[0]["takes"], "38.000");
  EXPECT_EQ(lora[0]["left"], "2.000");
  EXPECT_EQ(lora[0]["note"], "the next one fails: asked for <2 GiB>");
  EXPECT_FALSE(lora[1]["fits"]);
  EXPECT_FALSE(lora[1]["is_least"]);
  EXPECT_EQ(lora[1]["lacks"], "3.000");
  const auto& baseline = view["rows"][1]["cells"];
  EXPECT_EQ(baseline[0]["state"], "") << "nothing was asked of this one";
  EXPECT_EQ(baseline[1]["state_label"], "not known");
  EXPECT_EQ(baseline[1]["note"], "it ended crashed");
}

TEST(FitGrid, OfAGivenBatchFitsOrDoesNot) {
  auto given = fit_file(golden::emulated_run().created);
  given["label"] = "";
  const auto files = Folder(given).rendered();
  EXPECT_THAT(files.at("report.md"), HasSubstr("| lora | **fits**, takes 38.000, 2.000 left |"));
  for (const auto& [name, text] : files)
    EXPECT_THAT(text, Not(HasSubstr("the next one did not"))) << name;
}

TEST(FitGrid, StandsFirstInTheReportOfItsRun) {
  const Folder folder(fit_file(golden::emulated_run().created));
  const auto files = folder.rendered();
  const auto& page = files.at("index.html");
  EXPECT_THAT(page, HasSubstr("Largest batch size that fits"));
  EXPECT_LT(page.find("Largest batch size that fits"), page.find("class=\"group\""));
  EXPECT_THAT(page, HasSubstr("asked for &lt;2 GiB&gt;"));
  EXPECT_THAT(files.at("report.md"),
              HasSubstr("| lora | **1,234**, takes 38.000, 2.000 left | does "
                        "not fit, needs 18.000, lacks 3.000 |"));
}

TEST(FitGrid, OfARunWithOtherCasesIsNotShown) {
  auto other = fit_file(golden::emulated_run().created);
  other["cells"][0]["id"] = "another";
  EXPECT_THAT(Folder(other).rendered().at("index.html"), Not(HasSubstr("Largest batch size")));
}

TEST(FitGrid, OfAnotherRunInTheFolderIsNotShown) {
  const Folder folder(fit_file("2001-01-01T00:00:00Z"));
  EXPECT_THAT(folder.rendered().at("index.html"), Not(HasSubstr("Largest batch size")));
}

TEST(FitGrid, ThatCannotBeReadSaysWhere) {
  auto broken = fit_file("");
  broken["cells"][0]["largest"] = "many";
  const Folder folder(broken);
  try {
    folder.rendered();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const RunFileError& error) {
    EXPECT_THAT(error.what(), HasSubstr("fit.json: /cells/0/largest"));
  }
}

}  // namespace
}  // namespace peakbench::reports
