#include <gtest/gtest.h>

#include "errors/errors.h"
#include "json/lines.h"
#include "reports/fidelity/program_result.h"
#include "reports/fidelity/record.h"
#include "reports/fidelity/table.h"
#include "reports/fidelity/view.h"
#include "support/example_run.h"
#include "support/scratch.h"

namespace peakbench::fidelity {
namespace {

using peakbench::testing::example_run;
using peakbench::testing::message_of;
using peakbench::testing::ScratchFolder;
using peakbench::testing::write_text;

constexpr const char* kRecord = R"({
  "schema": "peakbench.fidelity/1",
  "figure": {"metric": "peak_allocated", "value": 10.5, "unit": "GiB"},
  "source": {"name": "Lab", "url": "https://example.org"},
  "card": "a100-80gb",
  "configuration": {
    "model": "vit-l-16", "strategy": "baseline", "dtype": "fp32",
    "batch_size": 8
  },
  "grade": "same_configuration"
})";
constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  return message_of<ConfigError>([&] { records_from(text, "FILE"); });
}

Record measured(double published, double rounded_to, std::int64_t ours) {
  Record record = records_from(kRecord, "FILE").records.at(0);
  record.figure.value = published;
  if (rounded_to > 0) record.figure.rounded_to = rounded_to;
  record.emulated = Emulated{.bytes = ours, .date = "2026-11-23"};
  return record;
}

TEST(JsonLines, AreOfKeysAndOfItemsInLists) {
  const JsonLines lines("{\n \"a\": 1,\n \"b\": [\n  {\"c\":\n 2},\n  \"x\"\n ]\n}");
  EXPECT_EQ(lines.of(""), 1u);
  EXPECT_EQ(lines.of("/a"), 2u);
  EXPECT_EQ(lines.of("/b"), 3u);
  EXPECT_EQ(lines.of("/b/0"), 4u);
  EXPECT_EQ(lines.of("/b/0/c"), 4u);
  EXPECT_EQ(lines.of("/b/1"), 6u);
  EXPECT_EQ(lines.of("/b/0/missing"), 4u) << "of the object that lacks it";
  EXPECT_EQ(lines.of("/missing/too"), 1u);
}

TEST(FidelityRecord, IsReadAndWrittenTheSame) {
  const auto records = records_from(kRecord, "FILE");
  ASSERT_EQ(records.records.size(), 1u);
  const auto& figure = records.records[0].figure;
  EXPECT_EQ(figure.device, "emulated:a100-80gb");
  EXPECT_EQ(figure.model, "vit-l-16");
  EXPECT_EQ(figure.batch_size, 8);
  EXPECT_EQ(figure.sequence_length, std::nullopt);
  EXPECT_EQ(records.records[0].reason, "not measured yet");
  const auto text = to_json(records).dump();
  EXPECT_EQ(to_json(records_from(text, "FILE")).dump(), text);
}

TEST(FidelityRecord, WrongFieldsHaveFileAndLine) {
  EXPECT_EQ(error_of(""), "FILE: the file is empty");
  EXPECT_EQ(
      error_of(with(kRecord, "GiB", "Gb/s")),
      "FILE:3: /figure/unit: expected bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB, got \"Gb/s\"");
  EXPECT_EQ(
      error_of(with(kRecord, "peak_allocated", "throughput")),
      "FILE:3: /figure/metric: \"throughput\" cannot be graded: an emulated card has no times");
  EXPECT_EQ(error_of(with(kRecord, "peak_allocated", "peak")),
            "FILE:3: /figure/metric: expected peak_memory, peak_allocated, peak_active, "
            "peak_reserved or throughput, got \"peak\"");
  EXPECT_EQ(error_of(with(kRecord, "10.5", "0")),
            "FILE:3: /figure/value: missing, or 0; a published figure is above 0");
  EXPECT_EQ(error_of(with(kRecord, "\"name\": \"Lab\", ", "")), "FILE:4: /source/name: missing");
  EXPECT_EQ(error_of(with(kRecord, "a100-80gb", "")), "FILE:5: /card: is empty");
  EXPECT_EQ(error_of(with(kRecord, "\"batch_size\": 8", "\"batch_size\": 0")),
            "FILE:8: /configuration/batch_size: expected an integer from 1 to 1000000000, got 0");
  EXPECT_EQ(error_of(with(kRecord, "\"batch_size\": 8", "\"batch\": 8")),
            "FILE:8: /configuration/batch: unknown key; did you mean \"batch_size\"?");
  EXPECT_EQ(error_of(with(kRecord, "same_configuration", "good")),
            "FILE:10: /grade: expected same_configuration, same_law, other_versions, computed, got "
            "\"good\"");
  EXPECT_EQ(error_of(with(kRecord, "\"unit\": \"GiB\"", "\"unit\": \"GiB\", \"rounded_to\": 0.4")),
            "FILE:3: /figure/rounded_to: 0.4 is coarser than the last digit of \"10.5 GiB\", which "
            "the source prints");
  EXPECT_EQ(error_of(with(kRecord, "\"unit\": \"GiB\"",
                          "\"unit\": \"GiB\", \"rounded_to\": 2, \"printed\": \"11 GB\"")),
            "FILE:3: /figure/rounded_to: 2 is coarser than the last digit of \"11 GB\", which the "
            "source prints");
  EXPECT_EQ(error_of(with(kRecord, "\"unit\": \"GiB\"",
                          "\"unit\": \"GiB\", \"rounded_to\": 1, \"printed\": \"eleven\"")),
            "FILE:3: /figure/printed: expected digits and a unit, like 24 GB, got \"eleven\"");
  EXPECT_EQ(error_of(with(kRecord, "\"grade\"", "\"measures\": \"kernel\", \"grade\"")),
            "FILE:10: /measures: expected training_step or operator, got \"kernel\"");
  EXPECT_EQ(error_of(with(kRecord, "fidelity/1", "fidelity/2")),
            "FILE:2: /schema: expected peakbench.fidelity/1, got \"peakbench.fidelity/2\"");
}

TEST(FidelityRecord, HasTheWholeCardsMemoryBesideTheFigure) {
  const auto text = with(kRecord, "\"grade\"",
                         R"("device_memory": {"value": 11264, "unit": "MiB"},
  "emulated": {"bytes": 1, "peak_used_bytes": [2, 3], "date": "2026-11-26"}, "grade")");
  const auto records = records_from(text, "FILE");
  const auto again = records_from(to_json(records).dump(), "AGAIN").records.at(0);
  EXPECT_EQ(again.device_memory.value().value, 11264);
  EXPECT_EQ(again.device_memory->unit, "MiB");
  EXPECT_EQ(again.emulated.value().peak_used_bytes, (std::vector<std::int64_t>{2, 3}));

  EXPECT_EQ(
      error_of(with(text, "\"MiB\"", "\"Mb/s\"")),
      "FILE:10: /device_memory/unit: expected bytes, KiB, MiB, GiB, TiB, kB, MB, GB or TB, got "
      "\"Mb/s\"");
  EXPECT_EQ(error_of(with(text, "[2, 3]", "[2, 0]")),
            "FILE:11: /emulated/peak_used_bytes: expected bytes above 0, got 0");
}

TEST(FidelityRecord, OneOfTheSameFigureIsReplaced) {
  Records records;
  const auto first = measured(10.5, 0, 1), again = measured(10.5, 0, 2);
  auto other = measured(10.5, 0, 3);
  other.figure.batch_size = 9;
  for (const auto& record : {first, other, again}) add(records, record);
  ASSERT_EQ(records.records.size(), 2u);
  EXPECT_EQ(records.records[0].emulated->bytes, 2);
}

TEST(FidelityRecord, OfARunIsTheCaseThatTheFigureIsAbout) {
  auto run = example_run();
  auto& done = run.cases.at(0);
  ASSERT_TRUE(done.memory);
  auto figure = records_from(kRecord, "FILE").records[0].figure;
  figure.device = done.spec.device;
  figure.model = done.spec.model.id;
  figure.strategy.clear();
  figure.dtype.clear();
  figure.batch_size.reset();
  auto elsewhere = figure, ungraded = figure;
  elsewhere.dtype = "fp8";
  ungraded.grade.clear();
  run.published = {figure, elsewhere, ungraded};
  const auto records = records_of(run).records;
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].emulated.value().bytes, done.memory->peak_allocated_bytes);
  EXPECT_EQ(records[0].emulated->phase, done.memory->peak_phase);
  EXPECT_FALSE(records[1].emulated);
  EXPECT_EQ(records[1].reason, "the run has no such case");
}

TEST(Fidelity, ADifferenceHasACauseBeyondHalfAPercentAndTheLastDigit) {
  const auto gib = [](double value) { return static_cast<std::int64_t>(value * kGiB); };
  EXPECT_NEAR(difference(measured(10, 0.001, gib(10.1))), 0.01, 1e-9);
  EXPECT_EQ(cause_of(measured(10, 0.001, gib(10.04))), "") << "0.4%";
  EXPECT_EQ(cause_of(measured(10, 0.001, gib(10.06))), "unknown");
  EXPECT_EQ(cause_of(measured(10, 0.2, gib(10.06))), "") << "it would be printed as 10.0";
  EXPECT_EQ(cause_of(measured(10.1, 0, gib(10.04))), "unknown") << "printed as 10.0, not 10.1";
  EXPECT_EQ(cause_of(measured(1.5, 0, gib(1.54))), "") << "2.7%, and printed as 1.5";
  auto explained = measured(10, 0.001, gib(11));
  explained.figure.cause = "versions";
  EXPECT_EQ(cause_of(explained), "versions");
}

TEST(Fidelity, AFigureCountsOnceAndOneThatNobodyMeasuredNever) {
  const auto gib = [](double value) { return static_cast<std::int64_t>(value * kGiB); };
  auto as_case = measured(10, 0, gib(10.02)), as_program = measured(10, 0, gib(10.004));
  as_program.program = {"train.py"};
  auto computed = measured(10, 0, gib(15)), kernel = measured(10, 0, gib(10));
  computed.figure.grade = result::kComputed;
  kernel.measures = kOperator;
  const auto view =
      page_view({.records = {as_case, as_program, computed, kernel}, .not_rebuilt = {}});
  ASSERT_EQ(view.grades.size(), 3u);
  EXPECT_EQ(view.grades[0].measures, "training steps");
  EXPECT_EQ(view.grades[1].measures, "operators");
  EXPECT_EQ(view.grades[2].figures, "2");
  ASSERT_EQ(view.summary.size(), 1u);
  EXPECT_EQ(view.summary[0].figures, "1");
  EXPECT_EQ(view.summary[0].largest, "+0.0400") << "the program's, not the case's";
  EXPECT_EQ(view.summary[0].near, "1");
  EXPECT_EQ(view.summary[0].close, "0");
  ASSERT_EQ(view.sources.size(), 1u);
  EXPECT_EQ(view.sources[0].figures.size(), 2u);
  EXPECT_EQ(view.sources[0].figures[0].others.size(), 1u);
  EXPECT_EQ(view.sources[0].urls.size(), 1u);
  EXPECT_EQ(view.sources[0].computed.size(), 1u);
  EXPECT_EQ(cause_of(computed), "");
  EXPECT_TRUE(view.causes.empty());
}

TEST(Fidelity, TheOtherSourcesAreCountedApartFromTheLargest) {
  const auto of = [](const char* source, double published, double ours) {
    auto record = measured(published, 0, static_cast<std::int64_t>(ours * kGiB));
    record.figure.source = source;
    return record;
  };
  const Records two{.records = {of("most", 10, 10), of("most", 11, 11), of("other", 12, 12.003)},
                    .not_rebuilt = {}};
  const auto summary = page_view(two).summary.at(0);
  EXPECT_EQ(summary.most, "2");
  EXPECT_EQ(summary.most_source, "most");
  EXPECT_EQ(summary.most_cards, "1");
  EXPECT_EQ(summary.others, "1");
  EXPECT_EQ(summary.others_close, "0") << "0.025%";
  EXPECT_EQ(summary.others_near, "1");
  EXPECT_EQ(summary.others_agree, "1");
  const auto alone = page_view({.records = {of("most", 10, 10)}, .not_rebuilt = {}});
  EXPECT_EQ(alone.summary.at(0).others, "") << "there is no other source";
}

TEST(Fidelity, RowsOfATableAreFiguresOfTheirOwn) {
  const auto linked = [](const std::string& url) {
    auto record = measured(10, 0, static_cast<std::int64_t>(10 * kGiB));
    record.figure.url = url;
    return record;
  };
  const auto figures = [&](const std::vector<std::string>& urls) {
    Records records;
    for (const auto& url : urls) records.records.push_back(linked(url));
    return page_view(records);
  };
  const std::string page = "https://example.org/table.csv";
  const auto rows = figures({page + "#L2", page + "#L3"});
  EXPECT_EQ(rows.figures, "2");
  ASSERT_EQ(rows.sources[0].figures.size(), 2u);
  EXPECT_EQ(rows.sources[0].figures[1].row_url, page + "#L3");
  ASSERT_EQ(rows.sources[0].urls.size(), 1u);
  EXPECT_EQ(rows.sources[0].urls[0].url, page);
  EXPECT_EQ(figures({page + "#L2", page + "#L2"}).figures, "1");
  EXPECT_EQ(figures({page + "#L2", page}).figures, "1") << "the second may be the first's row";
  EXPECT_EQ(figures({page, page}).sources[0].figures[0].row_url, "");
}

// What lies beside ours is told by card and by how many cards a run used; of several, by their
// mean.
TEST(Fidelity, WholeCardsAreComparedWithTheMedianOfWhatLiesBeside) {
  constexpr std::int64_t kMiB = 1 << 20;
  Records records;
  const auto run_on = [&](double published, std::vector<std::int64_t> ours) {
    auto record = measured(10.5, 0, 1);
    for (auto& bytes : ours) bytes *= kMiB;
    record.emulated->peak_used_bytes = std::move(ours);
    record.emulated->versions["torch"] = "2.6.0";
    record.device_memory = DeviceMemory{published, "MiB"};
    records.records.push_back(record);
  };
  run_on(1500, {1000});
  run_on(2501, {2000});
  run_on(3000, {2600});
  run_on(4000, {2000, 3000});
  records.records.push_back(measured(10.5, 0, 1));

  const auto views = page_view(records).device_memory;
  ASSERT_EQ(views.size(), 2u);
  EXPECT_EQ(views[0].card, "a100-80gb");
  EXPECT_EQ(views[0].torch, "2.6.0");
  EXPECT_EQ(views[0].figures, "3");
  EXPECT_EQ(views[0].least, "400");
  EXPECT_EQ(views[0].median, "500");
  EXPECT_EQ(views[0].most, "501");
  EXPECT_EQ(views[0].near, "2");
  EXPECT_EQ(views[0].lowest, "\u22120.0400");
  EXPECT_EQ(views[0].highest, "+3.33");
  EXPECT_EQ(views[1].cards, "2");
  EXPECT_EQ(views[1].median, "1,500");
}

class ProgramResult : public ::testing::Test {
 protected:
  std::string write(const std::string& text) {
    write_text(folder_ / "took.json", text);
    return folder_ / "took.json";
  }
  std::string error(const std::string& text, const std::string& metric = "peak_allocated") {
    auto record = records_from(kRecord, "FILE").records[0];
    record.figure.metric = metric;
    const auto path = write(text);
    return message_of<ConfigError>([&] { read_program_result(path, record); }).substr(path.size());
  }
  ScratchFolder folder_;
  const std::string took_ =
      R"({"card": "a100-80gb", "exit_code": 0, "torch": {"version": "2.6.0"},)"
      R"( "cards": [{"index": 0, "peak_used_bytes": 90}], "verdict": {"kind": "exact"}, "processes": [)"
      R"({"devices": [{"peak_allocated_bytes": 5, "peak_reserved_bytes": 50}]},)"
      R"({"devices": [{"peak_allocated_bytes": 7, "peak_reserved_bytes": 40}]}]})";
};

TEST_F(ProgramResult, IsTheLargestOfItsKind) {
  auto record = records_from(kRecord, "FILE").records[0];
  const auto path = write(took_);
  const auto ours = read_program_result(path, record);
  EXPECT_EQ(ours.bytes, 7);
  EXPECT_EQ(ours.verdict, "exact");
  EXPECT_EQ(ours.versions.at("torch"), "2.6.0");
  EXPECT_EQ(ours.peak_used_bytes, std::vector<std::int64_t>{90});
  record.figure.metric = "peak_reserved";
  EXPECT_EQ(read_program_result(path, record).bytes, 50);
}

TEST_F(ProgramResult, IsOfTheRecordsStreams) {
  std::string changed = kRecord;
  const auto from = changed.find("\"configuration\"");
  changed.replace(from, changed.find("\"grade\"") - from,
                  R"("configuration": {"program": ["train.py"], "streams": "soon"}, )");
  const auto record = records_from(changed, "FILE").records[0];
  EXPECT_EQ(configuration_of(record), "train.py (streams=soon)");
  EXPECT_EQ(to_json({.records = {record}, .not_rebuilt = {}})["records"][0]["configuration"],
            (nlohmann::ordered_json{{"program", {"train.py"}}, {"streams", "soon"}}));
  EXPECT_EQ(read_program_result(write(with(took_, "80gb", "80gb,streams=soon")), record).bytes, 7);
  EXPECT_NE(message_of<ConfigError>([&] {
              read_program_result(write(took_), record);
            }).find("the program ran on a100-80gb, the record is of streams=soon"),
            std::string::npos);
  EXPECT_NE(message_of<ConfigError>([&] {
              records_from(with(changed, "soon", "now"), "FILE");
            }).find("/configuration/streams: expected soon or late, got \"now\""),
            std::string::npos);
}

TEST_F(ProgramResult, StepsLeadToACase) {
  const std::string steps =
      R"([{"changed": "another norm", "arguments": ["--like-case", "norm"], "bytes": 6, "phase": "backward"}])";
  std::string program = kRecord;
  const auto from = program.find("\"configuration\"");
  program.replace(from, program.find("\"grade\"") - from,
                  R"("configuration": {"program": ["train.py"]}, "steps": [], )");
  const auto record = records_from(with(program, "[]", steps), "FILE").records[0];
  ASSERT_EQ(record.steps.size(), 1);
  EXPECT_EQ(record.steps[0].bytes, 6);
  EXPECT_EQ(to_json({.records = {record}, .not_rebuilt = {}})["records"][0]["steps"],
            nlohmann::ordered_json::parse(steps));

  const auto refused = [](const std::string& text, const std::string& said) {
    const auto message = message_of<ConfigError>([&] { records_from(text, "FILE"); });
    EXPECT_NE(message.find(said), std::string::npos) << message;
  };
  refused(with(program, "[]", R"([{"bytes": 6}])"), "/steps/0/changed");
  refused(with(program, "[]", R"([{"changed": "a", "bytes": 6}])"), "/steps/0/arguments");
  refused(with(program, "[]", R"([{"changed": "a", "arguments": [], "bytes": 6}])"),
          "/steps/0/arguments: is empty");
  refused(with(program, "[]", R"([{"changed": "a", "arguments": ["b"], "bytes": 0}])"),
          "/steps/0/bytes: expected bytes above 0, got 0");
  refused(with(program, "[]", R"([{"changed": "a", "arguments": ["b"], "why": "b"}])"),
          "/steps/0/why");
  refused(with(kRecord, "\"grade\"", R"("steps": [], "grade")"),
          "/steps: are of a program, and this is a case");
}

TEST_F(ProgramResult, StepsStayWhileTheFigureTheyBeginWithDoes) {
  Records records = records_from(kRecord, "FILE");
  auto& kept = records.records[0];
  kept.program = {"train.py"};
  kept.emulated = Emulated{.bytes = 7, .date = "2026-11-27"};
  auto again = kept;
  kept.steps = {{.changed = "another norm", .arguments = {"--like-case", "norm"}, .bytes = 6}};
  add(records, again);
  EXPECT_EQ(records.records[0].steps.size(), 1);
  again.emulated->bytes = 8;
  add(records, again);
  EXPECT_TRUE(records.records[0].steps.empty());
}

TEST_F(ProgramResult, OfSomethingElseIsRefused) {
  EXPECT_EQ(error(with(took_, "a100-80gb", "h100-80gb")),
            ": /card: the program ran on h100-80gb, the record is of a100-80gb");
  EXPECT_EQ(error(with(took_, "a100-80gb", "a100-80gb,streams=soon,count=2")),
            ": /card: the program ran on a100-80gb,streams=soon,count=2, the record is of "
            "streams=at-once");
  EXPECT_EQ(error(with(took_, "\"exit_code\": 0", "\"exit_code\": 1")),
            ": /exit_code: the program failed with 1: its peak is of no whole run");
  EXPECT_EQ(
      error(with(with(took_, "_bytes\": 5", "_bytes\": null"), "_bytes\": 7", "_bytes\": null")),
      ": /processes: no process has PyTorch's own count of memory on a card");
  EXPECT_TRUE(
      error(took_, "peak_active").starts_with(": `peakbench emulate` does not count active"));
  EXPECT_EQ(error("{}"), ": /card: missing");
}

}  // namespace
}  // namespace peakbench::fidelity
