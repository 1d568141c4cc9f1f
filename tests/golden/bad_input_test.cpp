// Whatever a report is made of may be broken: it says so, or shows what is left and says what is
// not.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "fake_trace.h"
#include "files.h"
#include "records.h"
#include "reports/run/report.h"
#include "trace/lifetimes.h"
#include "trace/summary.h"
#include "trace/trace_file.h"

namespace peakbench::golden {
namespace {

namespace fs = std::filesystem;

reports::ReportOptions options_for(const TemporaryFolder& folder) {
  reports::ReportOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  options.template_directory = PEAKBENCH_GOLDEN "/plain";
  options.output_directory = (folder / "report").string();
  return options;
}

// What is said when the run file has this text; nothing may be written.
std::string said_of(const std::string& run_file) {
  const TemporaryFolder folder;
  write_text(folder / "run.json", run_file);
  try {
    reports::write_reports({folder.string()}, options_for(folder));
  } catch (const RunFileError& error) {
    EXPECT_FALSE(fs::exists(folder / "report"));
    EXPECT_NE(std::string(error.what()).find((folder / "run.json").string()), std::string::npos)
        << error.what();
    return error.what();
  }
  ADD_FAILURE() << "a report was made";
  return "";
}

std::string run_file() {
  const TemporaryFolder folder;
  records::write_run(tutorial_run(), folder.string());
  return read_text(folder / "run.json");
}

TEST(BadInput, ARunFileCutShort) {
  const std::string whole = run_file();
  EXPECT_NE(said_of(whole.substr(0, whole.size() / 2)).find("cut short"), std::string::npos);
}

TEST(BadInput, ANewerRunFile) {
  std::string text = run_file();
  const std::string ours = records::kSchemaVersion;
  text.replace(text.find(ours), ours.size(), "2.0.0");
  EXPECT_NE(said_of(text).find("2.0.0 is newer than this Peakbench reads"), std::string::npos);
}

TEST(BadInput, AFolderWithoutARun) {
  const TemporaryFolder folder;
  try {
    reports::write_reports({folder.string()}, options_for(folder));
    FAIL();
  } catch (const RunFileError& error) {
    EXPECT_NE(std::string(error.what()).find("holds no run.json"), std::string::npos);
  }
}

TEST(BadInput, AnUnknownFieldOfATemplateHasItsFileAndLine) {
  const TemporaryFolder folder;
  write_text(folder / "html/answer.mustache", "fine\n{{#lowest}}{{gibs}}{{/lowest}}\n");
  auto options = options_for(folder);
  options.template_directory = folder.string();
  try {
    reports::render({tutorial_run()}, {""}, options);
    FAIL();
  } catch (const ConfigError& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("answer.mustache:2: unknown field `gibs`"), std::string::npos) << said;
    EXPECT_NE(said.find("did you mean `gib`"), std::string::npos) << said;
  }
}

TEST(BadInput, AThousandCasesWithoutTheirTracesAreOneLine) {
  const TemporaryFolder folder;
  records::Run run = many_cases(1000);
  for (std::size_t i = 0; i < run.cases.size(); ++i) {
    run.cases[i].spec.id += "/" + std::to_string(i);
    run.cases[i].ranks = {{0, {}, "cases/" + std::to_string(i) + "/trace.sqlite"}};
  }
  const auto files = reports::render({run}, {folder.string()}, options_for(folder));
  EXPECT_EQ(count(files.at("report.md"), "**Timeline** of 1,000 cases"), 1U);
  EXPECT_EQ(count(files.at("report.md"), "- **Timeline**"), 1U);
  EXPECT_EQ(count(files.at("index.html"), "No timeline: its trace is not there"), 1000U);
}

TEST(BadInput, ATraceCutShortIsNotShownAndSaysSo) {
  const TemporaryFolder folder;
  records::Run run = tutorial_run();
  run.cases.resize(1);
  const trace::Trace trace = fake_trace({});
  trace::write_trace(trace, folder / "trace.sqlite");
  const std::string whole = read_text(folder / "trace.sqlite");
  run.cases[0].memory = trace::summarise(trace);
  run.cases[0].ranks = {{0, {}, "trace.sqlite"}};
  const auto page = [&] {
    return reports::render({run}, {folder.string()}, options_for(folder)).at("index.html");
  };
  EXPECT_EQ(count(page(), "No timeline"), 0U);
  for (const std::size_t part : {std::size_t{1}, std::size_t{3}, std::size_t{7}}) {
    write_text(folder / "trace.sqlite", whole.substr(0, whole.size() * part / 8));
    EXPECT_EQ(count(page(), "No timeline"), 1U) << part;
  }
}

TEST(BadInput, AModuleOfAHundredThousandLevelsHasAReport) {
  const TemporaryFolder folder;
  records::Run run = tutorial_run();
  run.cases.resize(1);
  trace::Trace trace = fake_trace({});
  for (std::string& module : trace.modules) {
    for (int i = 0; i < 100'000; ++i) module += ".m";
  }
  trace::write_trace(trace, folder / "trace.sqlite");
  run.cases[0].memory = trace::summarise(trace);
  run.cases[0].ranks = {{0, {}, "trace.sqlite"}};
  const auto files = reports::render({run}, {folder.string()}, options_for(folder));
  EXPECT_EQ(count(files.at("index.html"), "No timeline"), 0U);
}

// A run of a later Peakbench, or of nobody.
TEST(BadInput, DevicesThatNobodyKnowsAreShownAsTheyStand) {
  for (const std::string device : {"tpu:4", "", "<b>", "emulated:x,memory=none", "cuda:all"}) {
    const TemporaryFolder folder;
    records::Run run = tutorial_run();
    for (auto& result : run.cases) result.spec.device = device;
    records::write_run(run, folder.string());
    const auto files = reports::render({records::read_run(folder.string())}, {folder.string()},
                                       options_for(folder));
    EXPECT_GT(count(files.at("report.md"), "vit-l-16"), 0U);
    const bool shown = count(files.at("index.html"), "tpu:4") > 0;
    EXPECT_EQ(shown, device == "tpu:4");
    EXPECT_EQ(count(files.at("index.html"), "<b>"), 0U);
  }
}

TEST(BadInput, AFileCannotBeReplaced) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "report/index.html/a folder in the way");
  records::write_run(tutorial_run(), folder.string());
  try {
    reports::write_reports({folder.string()}, options_for(folder));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("index.html"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace peakbench::golden
