// Comparisons against expected/comparison/: text wide and narrow, JSON, Markdown, HTML, JUnit. As
// for reports, plain/ stands in for the looks.
#include <gtest/gtest.h>

#include "base/errors.h"
#include "files.h"
#include "reports/compare/gate.h"
#include "reports/compare/view.h"
#include "support/fake_runs.h"

namespace peakbench::golden {
namespace {

namespace fs = std::filesystem;
using analysis::Source;
using testing::fake_case;
using testing::FakeRun;

// Every state that a case can be in, and one with its trace.
struct Pair {
  FakeRun traced_base{testing::tiny_trace(false)}, traced_now{testing::tiny_trace(true)};
  Source base = traced_base.source(), now = traced_now.source();

  Pair() {
    base.label = "results/main";
    now.label = "results/change";
    now.run.created = "2026-01-03T03:04:05Z";
    now.run.environment["commit"] = "4d5e6f7";
    base.run.cases[0].settings = {{"cudnn", true}};
    now.run.cases[0].settings = {{"cudnn", false}};
    now.run.cases[0].wall_ns = 1'500'000'000;
    add_states();
  }

  void add_states() {
    add("smaller/baseline/cpu/fp32/b1", 3LL << 30, 2LL << 30);
    add("larger/baseline/cpu/fp32/b1", 2LL << 30, 3LL << 30);
    add("same/baseline/cpu/fp32/b1", 1LL << 30, 1LL << 30);
    auto failing = fake_case("fails/baseline/cpu/fp32/b1", 1 << 20);
    base.run.cases.push_back(failing);
    failing.status = records::Status::kOutOfMemory;
    failing.reason = "1.000 GiB asked for, 0.500 GiB free";
    now.run.cases.push_back(failing);
    base.run.cases.push_back(fake_case("lost/baseline/cpu/fp32/b1", 1 << 20));
    now.run.cases.push_back(fake_case("fresh/baseline/cpu/fp32/b1", 1 << 20));
    add("moved/baseline/cuda:0/fp32/b1", 5, 6);
    base.run.environment["card"] = "NVIDIA A100";
    now.run.environment["card"] = "NVIDIA H100";
    base.run.cases.push_back(testing::timed_case({2'000'000, 2'000'000, 2'000'000}));
    now.run.cases.push_back(testing::timed_case({2'100'000, 2'100'000, 2'100'000}));
  }

  void add(const char* id, std::int64_t before, std::int64_t after) {
    base.run.cases.push_back(fake_case(id, before));
    now.run.cases.push_back(fake_case(id, after));
  }
};

compare::PageOptions page_with_plain_looks() {
  compare::PageOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  options.template_directory = PEAKBENCH_GOLDEN "/plain";
  return options;
}

std::map<std::string, std::string> pages(const Source& base, const Source& now) {
  const auto comparison = compare::compare(base, now, {});
  const auto decision = compare::decide(comparison);
  auto options = page_with_plain_looks();
  std::map<std::string, std::string> files;
  files["comparison.html"] = compare::render_html(base, now, comparison, options);
  files["comparison.md"] = compare::render_markdown(comparison, options);
  files["wide.txt"] = compare::to_text(comparison, 140);
  files["narrow.txt"] = compare::to_text(comparison, 60);
  files["gate.json"] = compare::to_json(comparison, decision)
                           .dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  files["gate.txt"] = compare::to_text(decision, 100);
  files["gate.xml"] = compare::junit(comparison, decision, options.template_directory,
                                     options.builtin_template_directory);
  options.gate.emplace();
  options.gate->passed = decision.outcome == compare::Outcome::kPassed;
  options.gate->label = to_string(decision.outcome);
  for (const auto& finding : decision.findings)
    options.gate->findings.push_back(compare::headline(finding));
  files["gate.md"] = compare::render_markdown(comparison, options);
  return files;
}

// Names of scratch folders differ from run to run.
void expect_files(const std::map<std::string, std::string>& files, const std::string& sample) {
  const auto folder = fs::path(PEAKBENCH_GOLDEN) / "expected" / sample;
  if (updating()) {
    fs::remove_all(folder);
    for (const auto& [name, bytes] : files) write_text(folder / name, bytes);
  }
  std::size_t expected = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    ++expected;
    const auto name = entry.path().filename().string();
    ASSERT_TRUE(files.count(name)) << name;
    EXPECT_EQ(files.at(name), read_text(entry.path())) << name;
  }
  EXPECT_EQ(files.size(), expected);
}

TEST(ComparisonGolden, EveryStateIsAsExpected) {
  const Pair pair;
  expect_files(pages(pair.base, pair.now), "comparison");
}

TEST(ComparisonGolden, NothingChangedIsAsExpected) {
  auto base = testing::plain_source("results/main", {fake_case("a/x/cpu/fp32/b1", 1 << 30)});
  auto now = base;
  now.label = "results/change";
  expect_files(pages(base, now), "comparison-same");
}

TEST(ComparisonGolden, NothingComparedIsAsExpected) {
  auto fails = fake_case("fails/x/cpu/fp32/b1", 1 << 20);
  fails.memory.reset();
  fails.status = records::Status::kNoEffect;
  fails.reason = "x declares the slot `schedule`, which no step called";
  auto base = testing::plain_source("results/main", {fails}), now = base;
  now.label = "results/change";
  now.run.cases.push_back(fake_case("fresh/x/cpu/fp32/b1", 1 << 30));
  expect_files(pages(base, now), "comparison-nothing");
}

// Whatever a name holds, it is shown and means nothing.
TEST(ComparisonPages, HostileNamesStayText) {
  const std::string hostile =
      "x<script>alert(1)</script>\"'&|`[a](b)*_~$@all\n# "
      "head\x1b[31m\xff\xf0\x9f\x92\xa9]]>{{title}}";
  auto base = testing::plain_source(hostile, {fake_case(hostile + "/cpu/cpu/b", 10)});
  auto now = testing::plain_source(hostile + "2", {fake_case(hostile + "/cpu/cpu/b", 20)});
  base.run.cases[0].memory->phases[hostile] = {1, 1};
  now.run.cases[0].memory->phases[hostile] = {2, 2};
  now.run.environment[hostile] = hostile;
  now.run.title = hostile;
  analysis::Part part{"forward", hostile, hostile, hostile, hostile, 10, 10};
  base.parts = {{base.run.cases[0].spec.id, {part}}};
  part.block_bytes = part.requested_bytes = 20;
  now.parts = {{base.run.cases[0].spec.id, {part}}};
  for (const auto& [name, bytes] : pages(base, now)) {
    if (name == "gate.json") continue;
    EXPECT_EQ(bytes.find('\x1b'), std::string::npos) << name;
    EXPECT_EQ(bytes.find('\xff'), std::string::npos) << name;
    if (name.ends_with(".txt")) continue;
    EXPECT_EQ(count(bytes, "<script>alert"), 0U) << name;
    EXPECT_EQ(count(bytes, "\n# head"), 0U) << name;
    EXPECT_EQ(count(bytes, "@all"), name.ends_with(".md") ? 0U : count(bytes, "@all")) << name;
  }
  const auto files = pages(base, now);
  EXPECT_EQ(count(files.at("gate.xml"), "<testcase"), 1U);
  EXPECT_EQ(nlohmann::json::parse(files.at("gate.json"))["cases"].size(), 1U);
}

// Of a case that got better by much, what made it better is not behind what hardly changed.
TEST(ComparisonPages, TheLargestDifferenceIsFirst) {
  const std::string id = "better/baseline/cpu/fp32/b1";
  constexpr std::int64_t kMany = 13, kLarge = 1 << 30;
  auto base = testing::plain_source("results/main", {fake_case(id, 2 * kLarge)});
  auto now = testing::plain_source("new", {fake_case(id, kLarge)});
  const auto part = [](const std::string& module, std::int64_t bytes) {
    return analysis::Part{"forward", "forward", "activation", module, "op", bytes, bytes};
  };
  base.parts = {{id, {part("large", kLarge)}}};
  now.parts = {{id, {part("grown", 4096)}}};
  for (std::int64_t i = 1; i <= kMany; ++i)
    base.parts[0].parts.push_back(part("small" + std::to_string(i) + "x", 64 * i));
  const auto files = pages(base, now);
  for (const char* name : {"wide.txt", "comparison.md", "gate.md", "comparison.html"}) {
    const std::string& text = files.at(name);
    const auto large = text.find("large"), grown = text.find("grown");
    const auto small = text.find("small13x");
    EXPECT_LT(large, grown) << name;
    EXPECT_LT(grown, small) << name;
    EXPECT_NE(small, std::string::npos) << name;
    EXPECT_EQ(text.find("small1x"), std::string::npos) << name << ": the least is left out";
  }
  const auto parts =
      nlohmann::json::parse(files.at("gate.json"))["cases"][0]["memory"]["growth"][0]["parts"];
  EXPECT_EQ(parts[0]["module"], "grown") << "for programs: what grew most first";
  EXPECT_EQ(parts.back()["module"], "large");
}

// GitHub refuses comments of more than 65,536 characters.
TEST(ComparisonPages, MarkdownStaysShort) {
  auto base = testing::plain_source("results/main", {}), now = testing::plain_source("new", {});
  for (int i = 0; i < 2000; ++i) {
    const auto id = std::string(150, 'm') + std::to_string(i) + "/baseline/cpu/fp32/b1";
    base.run.cases.push_back(fake_case(id, 1000));
    now.run.cases.push_back(fake_case(id, i % 2 == 0 ? 1000 : 2000));
    base.parts.push_back({id, {}});
    now.parts.push_back({id, {}});
    for (int part = 0; part < 12; ++part)
      now.parts.back().parts.push_back({"forward", "forward", "activation",
                                        std::string(250, 'p') + std::to_string(part), "op", 80,
                                        80});
  }
  const auto files = pages(base, now);
  EXPECT_LT(files.at("gate.md").size(), 65'536U);
  EXPECT_NE(files.at("gate.md").find(" more cases changed."), std::string::npos);
}

TEST(ComparisonPages, SayWhatIsWrongWithTheirFormatOrFolder) {
  const Pair pair;
  const auto comparison = compare::compare(pair.base, pair.now, {});
  auto options = page_with_plain_looks();
  const TemporaryFolder folder;
  write_text(folder / "file", "in the way");
  const auto error = [&] {
    try {
      compare::write_pages(pair.base, pair.now, comparison, options);
    } catch (const ConfigError& wrong) {
      return std::string(wrong.what());
    }
    return std::string();
  };
  options.output_directory = folder / "file";
  EXPECT_NE(error().find("cannot make the folder " + (folder / "file").string()),
            std::string::npos);
  options.output_directory = folder / "pages";
  options.formats = {"pdf"};
  EXPECT_NE(error().find("Unknown format \"pdf\""), std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "pages"));
  options.formats = {"text", "json", "markdown", "html"};
  EXPECT_EQ(error(), "");
  EXPECT_TRUE(fs::exists(folder / "pages/comparison.html"));
}

TEST(ComparisonFields, DocumentsListThem) {
  const auto path = fs::path(PEAKBENCH_DOCS) / "reference/comparison_fields.md";
  const std::string marker = "<!-- fields -->\n";
  auto text = read_text(path);
  const auto at = text.find(marker);
  ASSERT_NE(at, std::string::npos);
  const auto list = reports::fields_as_markdown(reports::fields_of<compare::ComparisonView>());
  if (updating()) {
    text = text.substr(0, at + marker.size()) + list;
    write_text(path, text);
  }
  EXPECT_EQ(text.substr(at + marker.size()), list) << "PEAKBENCH_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace
}  // namespace peakbench::golden
