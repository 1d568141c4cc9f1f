// The site: its drawings' numbers, its names, and what publishing does to a folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/errors.h"
#include "reports/trends/chart.h"
#include "reports/trends/publish.h"
#include "reports/trends/views.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench::trends {
namespace {

namespace fs = std::filesystem;
using peakbench::testing::example_run;
using peakbench::testing::message_of;
using peakbench::testing::read_text;
using peakbench::testing::ScratchFolder;
using peakbench::testing::write_text;
using ::testing::HasSubstr;
using ::testing::Not;
using trends::Metric;
using trends::TrendPoint;

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

// Points with these peaks; 0: the case failed.
class Drawing {
 public:
  explicit Drawing(const std::vector<std::int64_t>& peaks) {
    rows_.resize(peaks.size());
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      rows_[i].number = static_cast<std::int64_t>(i) + 1;
      rows_[i].created = "2026-01-01T00:00:00Z";
      trends::Point point;
      point.run = rows_[i].number;
      point.status = peaks[i] == 0 ? "out_of_memory" : "ok";
      if (peaks[i] != 0) point.allocated_bytes = peaks[i];
      trend.push_back({point, &rows_[i], "", false});
    }
  }
  nlohmann::json view() const {
    const auto chart = chart_view(trend, Metric::kAllocated,
                                  [](std::int64_t run) { return "#" + std::to_string(run); });
    return chart ? reports::data_of(*chart) : nlohmann::json(false);
  }
  Trend trend;

 private:
  std::vector<trends::RunRow> rows_;
};

TEST(Chart, PlacesPointsEvenlyAndByTheirBytes) {
  const auto view = Drawing({1 * kGiB, 4 * kGiB, 2 * kGiB}).view();
  // The axis reaches a sixth of the spread beyond both ends: from 0.5 to 4.5.
  EXPECT_EQ(view["lines"][0]["path"], "M0 875L500 125L1000 625");
  EXPECT_EQ(view["points"][1]["x"], "50");
  EXPECT_EQ(view["points"][1]["y"], "87.5");
  EXPECT_EQ(view["points"][1]["href"], "#2");
  EXPECT_THAT(view["points"][1]["label"].get<std::string>(),
              HasSubstr("4.000 GiB, 4,294,967,296 bytes (+3.000 GiB)"));
  EXPECT_EQ(view["unit"], "GiB");
  EXPECT_EQ(view["drawn"], "");
}

TEST(Chart, SmallDifferencesAreToldFromTheLeast) {
  const auto view = Drawing({6'000'000'000, 6'000'000'512}).view();
  EXPECT_EQ(view["unit"], "bytes");
  EXPECT_EQ(view["from"], "6,000,000,000 bytes");
  EXPECT_EQ(view["points"][1]["changed"], true);
  EXPECT_THAT(view["points"][1]["label"].get<std::string>(), HasSubstr("(+512 bytes)"));
  const auto mebibytes = Drawing({6'000'000'000, 6'000'000'000 + (12 << 20)}).view();
  EXPECT_EQ(mebibytes["unit"], "MiB");
}

TEST(Chart, OneFigureIsALineInTheMiddle) {
  const auto view = Drawing({2 * kGiB, 2 * kGiB}).view();
  EXPECT_EQ(view["lines"][0]["path"], "M0 500L1000 500");
  EXPECT_EQ(Drawing({2 * kGiB}).view()["points"][0]["x"], "50");
  EXPECT_EQ(Drawing({0, 0}).view(), false) << "no figure, no chart";
}

TEST(Chart, OnlyComparablePointsAreJoined) {
  Drawing drawing({kGiB, kGiB, 2 * kGiB, 2 * kGiB});
  drawing.trend[2].break_reason = "LibTorch 2.11.0 → 2.12.0";
  const auto view = drawing.view();
  ASSERT_EQ(view["lines"].size(), 2U);
  ASSERT_EQ(view["breaks"].size(), 1U);
  EXPECT_EQ(view["breaks"][0]["x"], "50");
  EXPECT_EQ(view["breaks"][0]["label"], "LibTorch 2.11.0 → 2.12.0");
  EXPECT_EQ(view["points"][2]["changed"], false);
  EXPECT_THAT(view["points"][2]["label"].get<std::string>(), Not(HasSubstr("+")));
}

TEST(Chart, AFailedCaseIsAPointWithoutALine) {
  const auto view = Drawing({kGiB, 0, kGiB}).view();
  EXPECT_EQ(view["lines"].size(), 2U);
  EXPECT_EQ(view["points"][1]["failed"], true);
  EXPECT_THAT(view["points"][1]["label"].get<std::string>(), HasSubstr("out_of_memory"));
}

TEST(Chart, ManyPointsAreThinnedOutAndExtremesStay) {
  std::vector<std::int64_t> peaks(10'000, kGiB);
  peaks[5'001] = 3 * kGiB;
  peaks[7'003] = kGiB / 2;
  const Drawing drawing(peaks);
  const auto drawn = drawn_points(drawing.trend, Metric::kAllocated);
  EXPECT_LE(drawn.size(), kDrawnInFull);
  for (const std::size_t place : {0, 5'001, 7'003, 9'999})
    EXPECT_TRUE(std::binary_search(drawn.begin(), drawn.end(), place)) << place;
  EXPECT_EQ(drawing.view()["count"], "10,000");
  EXPECT_NE(drawing.view()["drawn"], "");
  EXPECT_EQ(
      drawn_points(Drawing(std::vector<std::int64_t>(400, kGiB)).trend, Metric::kAllocated).size(),
      400U);
}

TEST(Names, AreSafeAndUnique) {
  trends::Series series;
  series.case_id = "../../etc/passwd<script>/ü";
  series.card = "A card";
  const auto page = trend_page(series);
  EXPECT_EQ(page.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-/."), std::string::npos)
      << page;
  EXPECT_EQ(page.rfind("trends/etc-passwd", 0), 0U) << page;
  series.card = "Another";
  EXPECT_NE(trend_page(series), page);
  EXPECT_EQ(runs_page(1), "runs/index.html");
  EXPECT_EQ(runs_page(3), "runs/page-3.html");
}

class SiteFolder : public ::testing::Test {
 protected:
  Published write(const std::vector<std::string>& names, const std::string& bytes = "bytes") {
    std::vector<Page> pages;
    for (const auto& name : names) pages.push_back({name, [bytes] { return bytes; }});
    return write_pages(out_, pages);
  }
  ScratchFolder folder_;
  std::string out_ = folder_ / "site";
};

TEST_F(SiteFolder, OnlyWhatChangedIsWritten) {
  EXPECT_EQ(write({"a.html", "b/c.html"}).written, 2U);
  const auto stamp = fs::last_write_time(out_ + "/a.html");
  const auto again = write({"a.html", "b/c.html"});
  EXPECT_EQ(again.written, 0U);
  EXPECT_EQ(again.unchanged, 2U);
  EXPECT_EQ(fs::last_write_time(out_ + "/a.html"), stamp);
  EXPECT_EQ(write({"a.html", "b/c.html"}, "others").written, 2U);
}

TEST_F(SiteFolder, OnlyOurOwnFilesAreRemoved) {
  write({"a.html", "b/c.html"});
  write_text(out_ + "/CNAME", "example.org");
  EXPECT_EQ(write({"a.html"}).removed, 1U);
  EXPECT_FALSE(fs::exists(out_ + "/b"));
  EXPECT_TRUE(fs::exists(out_ + "/CNAME"));
}

TEST_F(SiteFolder, StrangersInTheWayAreNotOverwritten) {
  fs::create_directories(out_);
  write_text(out_ + "/a.html", "somebody's");
  EXPECT_THAT(message_of<ConfigError>([&] { write({"a.html"}); }),
              HasSubstr("not written by `peakbench publish`"));
  EXPECT_EQ(read_text(out_ + "/a.html"), "somebody's");
}

TEST_F(SiteFolder, AManifestCannotReachOutside) {
  write({"a.html"});
  write_text(folder_ / "precious", "kept");
  write_text(out_ + "/peakbench-site.json",
             R"({"files": ["../precious", ")" + folder_ / "precious" + R"(", "a.html"]})");
  write({"b.html"});
  EXPECT_TRUE(fs::exists(folder_ / "precious"));
  EXPECT_FALSE(fs::exists(out_ + "/a.html"));
  write_text(out_ + "/peakbench-site.json", "{}");
  EXPECT_THAT(message_of<ConfigError>([&] { write({"b.html"}); }), HasSubstr("/files"));
}

TEST_F(SiteFolder, AFailureInTheMiddleIsTakenUp) {
  std::vector<Page> pages{{"a.html", [] { return "1"; }},
                          {"b.html", []() -> std::string { throw ConfigError("stop"); }}};
  EXPECT_THROW(write_pages(out_, pages), ConfigError);
  EXPECT_EQ(write({"b.html"}).removed, 1U) << "a.html of the broken publish";
}

class Publishing : public ::testing::Test {
 protected:
  Publishing() {
    auto history = trends::History::open_to_write(path_);
    for (int day = 1; day < 6; ++day) {
      auto run = example_run();
      run.status = "complete";
      run.created = "2026-01-0" + std::to_string(day) + "T03:04:05Z";
      run.title = "<b>Title</b>";
      run.cases[0].memory->peak_allocated_bytes += day / 3 * 512;
      if (day == 5) {
        run.cases[0].emulation->verdict = records::Verdict{};
        run.cases[0].emulation->verdict->kind = records::VerdictKind::unreliable;
      }
      history.add(run, {}, {"main", "c0ffee00" + std::to_string(day), "passed", ""});
    }
    options_.output_directory = folder_ / "site";
    options_.builtin_template_directory = PEAKBENCH_TEMPLATES;
    options_.reports = 2;
  }
  Published publish() { return trends::publish(trends::History::open_to_read(path_), options_); }
  std::map<std::string, std::string> files() {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::recursive_directory_iterator(options_.output_directory))
      if (entry.is_regular_file())
        all[fs::relative(entry.path(), options_.output_directory).string()] =
            read_text(entry.path());
    return all;
  }
  ScratchFolder folder_;
  std::string path_ = folder_ / "h.sqlite";
  Options options_;
};

TEST_F(Publishing, TheSameHistoryGivesTheSameBytes) {
  publish();
  const auto first = files();
  EXPECT_EQ(publish().written, 0U);
  options_.output_directory = folder_ / "elsewhere";
  publish();
  EXPECT_EQ(files(), first);
  EXPECT_EQ(first.count("runs/5/index.html"), 1U);
  EXPECT_EQ(first.count("runs/3/index.html"), 0U) << "only the newest two have reports";
}

// That nothing changed is said where something was compared, and of one run in the singular.
TEST_F(Publishing, ASingleRunIsComparedWithNothing) {
  path_ = folder_ / "single.sqlite";
  auto run = example_run();
  run.status = "complete";
  run.cases[0].spec.device_options = {{"memory", "60GiB"}};
  run.cases[0].added_for = "";
  trends::History::open_to_write(path_).add(run, {}, {"main", "c0ffee", "passed", ""});
  publish();
  const auto index = files().at("index.html");
  EXPECT_THAT(index, HasSubstr("Nothing to compare with yet"));
  EXPECT_THAT(index, Not(HasSubstr("memory changed")));
  EXPECT_THAT(index, HasSubstr("<span>1 run</span>"));
  EXPECT_THAT(index,
              HasSubstr("All of 1 run</a>; the newest of branch main has a report of its own"));
  EXPECT_THAT(index, HasSubstr("memory=60GiB"));
  for (const auto& [name, bytes] : files()) {
    if (!name.ends_with(".html") || name.rfind("runs/1/", 0) == 0) continue;
    EXPECT_THAT(bytes, Not(HasSubstr("1 runs"))) << name;
    EXPECT_THAT(bytes, Not(HasSubstr("{&quot;memory"))) << name;
  }
  run.created = "2030-01-01T00:00:00Z";
  trends::History::open_to_write(path_).add(run, {}, {"main", "c0ffee", "passed", ""});
  publish();
  EXPECT_THAT(files().at("index.html"), HasSubstr("No case's memory changed in the newest run ("));
  run.created = "2030-01-02T00:00:00Z";
  run.cases[0].memory->peak_allocated_bytes += 512;
  trends::History::open_to_write(path_).add(run, {}, {"main", "c0ffee", "passed", ""});
  publish();
  EXPECT_THAT(files().at("index.html"),
              HasSubstr("+512 bytes</strong>. <a href=\"compare/index.html\">What it is made of"));
}

TEST_F(Publishing, NamesStayText) {
  publish();
  for (const auto& [name, bytes] : files()) EXPECT_THAT(bytes, Not(HasSubstr("<b>Title"))) << name;
}

TEST_F(Publishing, APointWithoutAReportLeadsToItsLine) {
  publish();
  for (const auto& [name, bytes] : files()) {
    if (name.rfind("trends/", 0) != 0) continue;
    EXPECT_THAT(bytes, HasSubstr("href=\"../runs/5/index.html\""));
    EXPECT_THAT(bytes, HasSubstr("href=\"../runs/index.html#run-1\""));
  }
}

TEST_F(Publishing, APointSaysHowFarItsFiguresCanBeReliedOn) {
  publish();
  std::size_t said = 0;
  for (const auto& [name, bytes] : files())
    if (name.rfind("trends/", 0) == 0 && bytes.find("<small>unreliable</small>") != bytes.npos) {
      ++said;
      EXPECT_THAT(bytes, HasSubstr("<span class=\"badge\">unreliable</span>")) << "it changed";
    }
  EXPECT_EQ(said, 1U);
}

TEST_F(Publishing, ATemplateWithAnErrorStopsItBeforeAnythingIsWritten) {
  fs::create_directories(folder_ / "mine/site");
  write_text(folder_ / "mine/site/runs.html.mustache", "{{#runs}}{{nummer}}{{/runs}}");
  options_.template_directory = folder_ / "mine";
  EXPECT_THAT(message_of<ConfigError>([&] { publish(); }), HasSubstr("did you mean `number`?"));
  EXPECT_FALSE(fs::exists(options_.output_directory));
}

TEST_F(Publishing, SaysThatThereIsNothing) {
  options_.branch = "mian";
  EXPECT_THAT(message_of<ConfigError>([&] { publish(); }), HasSubstr("there are: main"));
  path_ = folder_ / "empty.sqlite";
  trends::History::open_to_write(path_);
  EXPECT_THAT(message_of<ConfigError>([&] { publish(); }), HasSubstr("holds no run yet"));
}

TEST(SiteFields, AreThoseOfTheDocumentation) {
  const std::string page = PEAKBENCH_SOURCE_DIR "/docs/reference/site_fields.md";
  const std::string marker = "<!-- fields -->\n";
  auto text = read_text(page);
  const auto at = text.find(marker);
  ASSERT_NE(at, std::string::npos) << page;
  if (std::getenv("PEAKBENCH_UPDATE_GOLDEN") != nullptr)
    write_text(page, text.substr(0, at + marker.size()) + fields_as_markdown());
  text = read_text(page);
  EXPECT_EQ(text.substr(at + marker.size()), fields_as_markdown())
      << "PEAKBENCH_UPDATE_GOLDEN=1 writes it anew";
}

}  // namespace
}  // namespace peakbench::trends
