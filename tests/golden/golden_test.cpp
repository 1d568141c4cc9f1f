// Whole reports against expected/RUN/. The style sheet and the script are replaced by plain/, the
// user's template folder of this test: so the expected pages hold what is said, not how it looks,
// and overriding is tested on the way.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "files.h"
#include "records.h"
#include "reports/run/report.h"
#include "reports/run/view.h"

namespace peakbench::golden {
namespace {

namespace fs = std::filesystem;

reports::ReportOptions options_with_plain_looks() {
  reports::ReportOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  options.template_directory = PEAKBENCH_GOLDEN "/plain";
  return options;
}

struct Sample {
  const char* name;
  records::Run (*run)();
};

// The first line that differs: whole pages would bury it.
std::string first_difference(const std::string& actual, const std::string& expected) {
  if (actual == expected) return "";
  std::istringstream left(actual), right(expected);
  std::string ours, theirs;
  for (int line = 1;; ++line) {
    const bool more = static_cast<bool>(std::getline(left, ours)),
               wanted = static_cast<bool>(std::getline(right, theirs));
    if (more && wanted && ours == theirs) continue;
    return "line " + std::to_string(line) + "\n  is       " +
           (more ? ours.substr(0, 400) : "(the end)") + "\n  expected " +
           (wanted ? theirs.substr(0, 400) : "(the end)");
  }
}

class Golden : public ::testing::TestWithParam<Sample> {};

TEST_P(Golden, ReportIsAsExpected) {
  const fs::path folder = fs::path(PEAKBENCH_GOLDEN) / "expected" / GetParam().name;
  auto files = reports::render({GetParam().run()}, {""}, options_with_plain_looks());
  files["terminal.txt"] = reports::main_table(GetParam().run(), 100);
  if (updating()) {
    fs::remove_all(folder);
    for (const auto& [name, bytes] : files) write_text(folder / name, bytes);
  }
  std::size_t expected = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++expected;
    const std::string name = entry.path().filename().string();
    ASSERT_TRUE(files.count(name)) << name << " is expected and was not rendered";
    EXPECT_EQ(first_difference(files[name], read_text(entry.path())), "") << name;
  }
  EXPECT_EQ(files.size(), expected);
}

INSTANTIATE_TEST_SUITE_P(Reports, Golden,
                         ::testing::Values(Sample{"tutorial", tutorial_run},
                                           Sample{"emulated", emulated_run},
                                           Sample{"cards", cards_run},
                                           Sample{"hostile", hostile_run},
                                           Sample{"interrupted", interrupted_run}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HostileNames, StayText) {
  for (const auto& [name, bytes] :
       reports::render({hostile_run()}, {""}, options_with_plain_looks())) {
    if (name == "report.md") continue;
    EXPECT_EQ(count(bytes, "<img"), 0U) << name;
    EXPECT_EQ(count(bytes, "</script>"), name == "index.html" ? 1U : 0U) << name;
    EXPECT_EQ(count(bytes, "href=\"javascript"), 0U) << name;
    EXPECT_EQ(count(bytes, "\x1b"), 0U) << name;
    EXPECT_EQ(count(bytes, "\xff"), 0U) << name;
  }
}

TEST(HostileNames, StayTextInMarkdown) {
  const std::string text =
      reports::render({hostile_run()}, {""}, options_with_plain_looks()).at("report.md");
  EXPECT_EQ(count(text, "<img"), 1U) << "outside the command's fence";
  EXPECT_EQ(count(text, "[x](javascript"), 1U) << "outside the command's fence";
  EXPECT_EQ(count(text, "\n# "), 0U) << "a heading that a name brought in";
  EXPECT_EQ(count(text, "\n```\n"), 2U) << "the command's fence is closed by a name";
}

TEST(WriteReports, SaysWhatCannotBeWritten) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "run");
  records::write_run(tutorial_run(), (folder / "run").string());
  write_text(folder / "taken", "a file");
  auto options = options_with_plain_looks();
  options.output_directory = (folder / "taken").string();
  try {
    reports::write_reports({(folder / "run").string()}, options);
    FAIL() << "wrote into a file";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(options.output_directory), std::string::npos)
        << error.what();
  }
}

TEST(WriteReports, WritesWhatItSaysIndexFirst) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "run");
  records::write_run(tutorial_run(), (folder / "run").string());
  auto options = options_with_plain_looks();
  options.output_directory = (folder / "run/report").string();
  const auto written = reports::write_reports({(folder / "run").string()}, options);
  ASSERT_FALSE(written.empty());
  EXPECT_EQ(fs::path(written.front()).filename(), "index.html");
  for (const std::string& path : written) EXPECT_TRUE(fs::is_regular_file(path)) << path;
  EXPECT_EQ(
      static_cast<std::size_t>(std::distance(fs::directory_iterator(folder / "run/report"), {})),
      written.size());
}

TEST(WriteReports, RefusesAnUnknownFormat) {
  auto options = options_with_plain_looks();
  options.formats = {"pdf"};
  EXPECT_THROW(reports::render({tutorial_run()}, {""}, options), ConfigError);
}

TEST(WriteReports, JoinsRuns) {
  const auto files =
      reports::render({tutorial_run(), emulated_run()}, {"", ""}, options_with_plain_looks());
  EXPECT_NE(files.at("index.html").find("A card that is not there"), std::string::npos);
  EXPECT_NE(files.at("report.md").find("### A card that is not there"), std::string::npos);
}

TEST(WriteReports, RendersAThousandCases) {
  const auto files = reports::render({many_cases(1000)}, {""}, options_with_plain_looks());
  EXPECT_GE(count(files.at("index.html"), "role=\"rowheader\""), 1000U);
}

TEST(PublishedFields, AreThoseOfTheDocumentation) {
  const fs::path page = fs::path(PEAKBENCH_DOCS) / "reference/report_fields.md";
  const std::string marker = "<!-- fields -->\n";
  const auto fields = reports::fields_as_markdown(reports::fields_of<reports::ReportView>());
  std::string text = read_text(page);
  const auto at = text.find(marker);
  ASSERT_NE(at, std::string::npos) << page;
  if (updating()) {
    text = text.substr(0, at + marker.size()) + fields;
    write_text(page, text);
  }
  EXPECT_EQ(first_difference(text.substr(at + marker.size()), fields), "");
}

}  // namespace
}  // namespace peakbench::golden
