// Reports of a program whose trace has call stacks, against expected/program/ and
// expected/program-comparison/.
#include <gtest/gtest.h>

#include "files.h"
#include "program_run.h"
#include "reports/compare/render.h"
#include "reports/run/report.h"
#include "reports/run/view.h"

namespace peakbench::golden {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

reports::ReportOptions plain_looks() {
  reports::ReportOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  options.template_directory = PEAKBENCH_GOLDEN "/plain";
  options.charts = false;
  return options;
}

void expect_files(const fs::path& folder, const std::map<std::string, std::string>& files) {
  if (updating()) {
    fs::remove_all(folder);
    for (const auto& [name, bytes] : files) write_text(folder / name, bytes);
  }
  std::size_t expected = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++expected;
    const std::string name = entry.path().filename().string();
    ASSERT_TRUE(files.count(name)) << name << " is expected and was not rendered";
    EXPECT_EQ(files.at(name), read_text(entry.path())) << name;
  }
  EXPECT_EQ(files.size(), expected);
}

TEST(Program, ReportIsAsExpected) {
  const TemporaryFolder folder;
  const records::Run run = program_run(folder.string(), {});
  auto files = reports::render({run}, {folder.string()}, plain_looks());
  files["terminal.txt"] = reports::main_table(run, 100, folder.string());
  expect_files(fs::path(PEAKBENCH_GOLDEN) / "expected/program", files);
}

// Of a suite: those on one device are one table, by their names, and none is the best of them.
TEST(Program, SeveralAreOneTable) {
  records::Run run;
  for (const auto& [name, device] : {std::pair{"a", "emulated:h100-80gb"},
                                     {"b", "emulated:h100-80gb"},
                                     {"a", "emulated:t4-16gb"}}) {
    auto& one = run.cases.emplace_back();
    one.spec.kind = records::CaseKind::kProgram;
    one.spec.model = {name, {{"batch", 4}}};
    one.spec.device = device;
    one.spec.batch_size = records::kUnknownBatch;
    one.spec.id = one.spec.slug = fmt::format("{}-{}", name, device);
    one.memory.emplace().peak_allocated_bytes = 1 << 20;
  }
  const auto view = reports::make_view({run});
  ASSERT_EQ(view.groups.size(), 2U);
  EXPECT_EQ(view.groups[0].model, "Programs");
  EXPECT_EQ(view.groups[0].row_heading, "Program");
  EXPECT_TRUE(view.groups[0].settings.empty());
  ASSERT_EQ(view.groups[0].rows.size(), 2U);
  EXPECT_EQ(view.groups[0].rows[1].strategy, "b,batch=4");
  EXPECT_FALSE(view.groups[0].lowest);
  EXPECT_FALSE(view.groups[0].rows[0].is_lowest);
  EXPECT_EQ(view.groups[1].model, "a,batch=4") << "alone it has its own name";
}

TEST(Program, ComparisonIsAsExpected) {
  const TemporaryFolder before, after;
  analysis::Source base, now;
  base.label = "results/before";
  base.folder = before.string();
  base.run = program_run(before.string(), {.leaks = false});
  now.label = "results/after";
  now.folder = after.string();
  now.run = program_run(after.string(), {});
  now.run.created = "2026-11-26T14:05:06Z";
  const auto comparison = compare::compare(base, now, {});
  compare::PageOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  options.template_directory = PEAKBENCH_GOLDEN "/plain";
  expect_files(fs::path(PEAKBENCH_GOLDEN) / "expected/program-comparison",
               {{"comparison.md", compare::render_markdown(comparison, options)},
                {"wide.txt", compare::to_text(comparison, 140)},
                {"narrow.txt", compare::to_text(comparison, 60)}});
}

TEST(Program, NamesFromItsTraceStayText) {
  const TemporaryFolder folder;
  const records::Run run = program_run(folder.string(), {.hostile = true});
  for (const auto& [name, bytes] : reports::render({run}, {folder.string()}, plain_looks())) {
    EXPECT_EQ(count(bytes, "<img"), 0U) << name;
    EXPECT_EQ(count(bytes, "\x1b"), 0U) << name;
    const bool is_markdown = name == "report.md";
    EXPECT_EQ(is_markdown ? count(bytes, "[x](javascript") : 0, 0U) << name;
  }
}

TEST(Program, LinesAndTheRestAreThePeak) {
  const TemporaryFolder folder;
  const std::vector<records::Run> runs{program_run(folder.string(), {.many_lines = true})};
  const json row = data_of(make_view(
      runs, reports::read_anatomies(runs, {folder.string()}, false)))["groups"][0]["rows"][0];
  const json& lines = row["lines"]["lines"];
  ASSERT_EQ(lines.size(), 21U);
  EXPECT_TRUE(lines[20]["rest"]);
  EXPECT_NE(lines[20]["line"].get<std::string>().find(" more lines"), std::string::npos);
  std::int64_t sum = 0;
  for (const json& line : lines) {
    auto bytes = line["bytes"].get<std::string>();
    std::erase(bytes, ',');
    sum += std::stoll(bytes);
  }
  EXPECT_EQ(sum, runs[0].cases[0].memory->peak_allocated_bytes);
}

// A call of a library that trains is one line of the program: the table goes on below it.
TEST(Program, BelowALineThatHoldsOverHalfAreTheLibrariesThatItCalls) {
  const auto lines_of = [](const ProgramRun& how) {
    const TemporaryFolder folder;
    const std::vector<records::Run> runs{program_run(folder.string(), how)};
    const json view =
        data_of(make_view(runs, reports::read_anatomies(runs, {folder.string()}, false)));
    return view["groups"][0]["rows"][0]["lines"];
  };
  EXPECT_FALSE(lines_of({})["has_called"]) << "no line holds half";
  const json lines = lines_of({.trainer = true});
  EXPECT_EQ(lines["lines"][0]["line"], "train.py:31");
  ASSERT_TRUE(lines["has_called"]);
  EXPECT_EQ(lines["called"][0]["line"], "transformers/loss/loss_utils.py:42");
  EXPECT_EQ(lines["called"][0]["function"], "fixed_cross_entropy");
  EXPECT_EQ(lines["called"][0]["bytes"], "419,430,400");
  EXPECT_EQ(lines["called"][1]["line"], "transformers/models/llama/modeling_llama.py:147");
}

TEST(Program, FlameGraphsNestWithinTheirCallers) {
  const TemporaryFolder folder;
  const std::vector<records::Run> runs{program_run(folder.string(), {})};
  const json frames = data_of(
      make_view(runs, reports::read_anatomies(runs, {folder.string()},
                                              false)))["groups"][0]["rows"][0]["lines"]["frames"];
  const auto number = [](const json& frame, const char* field) {
    return std::stod(frame[field].get<std::string>());
  };
  double outermost = 0;
  for (const json& frame : frames) {
    if (frame["level"] == "0") outermost += number(frame, "width");
    EXPECT_LE(number(frame, "x") + number(frame, "width"), 1.0002);
  }
  EXPECT_NEAR(outermost, 1, 0.001);
}

}  // namespace
}  // namespace peakbench::golden
