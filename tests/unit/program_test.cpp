// A program's run folder: what stands in it, and that reports, comparisons and gates read it.
#include <gmock/gmock.h>

#include <filesystem>

#include "base/errors.h"
#include "programs/run_folder.h"
#include "programs/traced.h"
#include "records/case.h"
#include "records/run.h"
#include "reports/compare/compare.h"
#include "reports/compare/gate.h"
#include "reports/run/report.h"
#include "support/fake_trace.h"
#include "support/scratch.h"
#include "trace/trace_file.h"

namespace peakbench {
namespace {

using programs::ProgramRun;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::ScratchFolder;

// A weight of 1000 bytes, and in each of two steps an activation.
trace::Trace training(std::int64_t hidden_bytes) {
  trace::FakeTrace fake("cuda:0");
  fake.trace().counts_build = true;
  fake.from({fake.frame("/home/me/train.py", "<module>", 3)});
  fake.named(trace::Role::kParameter, "linear.weight", "[250]", "fp32").alloc(1000, 1024);
  for (int step = 0; step < 2; ++step) {
    const auto hidden = fake.forward(step).alloc(hidden_bytes, hidden_bytes);
    fake.backward(step).free(hidden);
  }
  return fake.trace();
}

ProgramRun program(std::int64_t hidden_bytes) {
  ProgramRun run;
  run.name = "my train.py";
  run.device = "cuda:0";
  run.command = {"python", "my train.py"};
  run.processes = {{0, training(hidden_bytes)}};
  run.settings = {{"recorded_by", "a test"}};
  run.environment = {{"card", "A Card"}};
  return run;
}

analysis::Source source(const std::string& folder) {
  analysis::Source one;
  one.run = records::read_run(folder);
  one.folder = one.label = folder;
  return one;
}

TEST(ProgramRun, IsARunOfOneCase) {
  const ScratchFolder folder;
  const auto written = write_program_run(program(2048), folder / "run");
  const auto run = records::read_run(folder / "run");
  ASSERT_EQ(run.cases.size(), 1U);
  const auto& found = run.cases[0];
  EXPECT_EQ(found.spec.id, "program/my-train.py/cuda:0");
  EXPECT_EQ(found.spec.id, written.spec.id);
  EXPECT_EQ(found.memory->peak_allocated_bytes, 1024 + 2048);
  EXPECT_EQ(found.memory->at_peak.at("parameter"), 1000);
  EXPECT_EQ(run.settings.at("recorded_by"), "a test");
  EXPECT_EQ(found.environment.at("card"), "A Card");
  ASSERT_EQ(found.ranks.size(), 1U);
  const auto trace = trace::read_trace(folder / ("run/" + found.ranks[0].trace));
  EXPECT_TRUE(trace.counts_build);
  EXPECT_EQ(trace.frames.size(), 1U);
}

TEST(ProgramRun, OfSeveralProcessesShowsTheLargest) {
  const ScratchFolder folder;
  auto run = program(2048);
  run.processes = {{3, training(8192)}, {0, training(2048)}};
  const auto found = write_program_run(run, folder / "run");
  EXPECT_EQ(found.memory->peak_allocated_bytes, 1024 + 8192);
  ASSERT_EQ(found.ranks.size(), 2U);
  EXPECT_EQ(found.ranks[0].rank, 0);
  EXPECT_EQ(headline_rank(found).rank, 3);
  EXPECT_THAT(found.ranks[0].trace, HasSubstr("/trace.sqlite"));
  EXPECT_THAT(found.ranks[1].trace, HasSubstr("/trace.3.sqlite"));
  run.processes[0].rank = 0;
  EXPECT_THAT(message_of<std::invalid_argument>([&] { write_program_run(run, folder / "other"); }),
              HasSubstr("rank 0"));
}

TEST(ProgramRun, NeverComesOverAnotherUnasked) {
  const ScratchFolder folder;
  write_program_run(program(2048), folder / "run");
  EXPECT_THAT(message_of<ConfigError>([&] { write_program_run(program(4096), folder / "run"); }),
              HasSubstr("holds a run already"));
  EXPECT_EQ(records::read_run(folder / "run").cases[0].memory->peak_allocated_bytes, 1024 + 2048);
  write_program_run(program(4096), folder / "run", programs::Folder::kOverwritten);
  EXPECT_EQ(records::read_run(folder / "run").cases[0].memory->peak_allocated_bytes, 1024 + 4096);
  std::filesystem::create_directories(folder / "mine/cases/x");
  EXPECT_THAT(message_of<ConfigError>([&] { write_program_run(program(1), folder / "mine"); }),
              HasSubstr("Nothing was touched"));
}

TEST(ProgramRun, SaysWhyATraceHasNoFigures) {
  const ScratchFolder folder;
  auto run = program(2048);
  run.processes[0].trace.events.back().address = 0x42;
  const auto found = write_program_run(run, folder / "run");
  EXPECT_FALSE(found.memory);
  EXPECT_THAT(found.reason, HasSubstr("nothing is allocated there"));
  EXPECT_TRUE(std::filesystem::exists(folder / ("run/" + found.ranks[0].trace)));
}

TEST(ProgramRun, HasAReport) {
  const ScratchFolder folder;
  write_program_run(program(2048), folder / "run");
  reports::ReportOptions options;
  options.formats = {"html", "markdown"};
  options.output_directory = folder / "report";
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  reports::write_reports({folder / "run"}, options);
  const auto page = testing::read_text(folder / "report/report.md");
  EXPECT_THAT(page, HasSubstr("| 1 | **my-train.py** | **&lt;0.001** |"));
  EXPECT_THAT(page, HasSubstr("recorded by | a test"));
  EXPECT_THAT(page, Not(HasSubstr("batch")));
  EXPECT_THAT(page, Not(HasSubstr("needs less memory")));
  EXPECT_THAT(page, Not(HasSubstr("reference")));
  EXPECT_THAT(testing::read_text(folder / "report/index.html"), HasSubstr("my-train.py"));
}

TEST(ProgramRun, IsComparedAndGated) {
  const ScratchFolder folder;
  write_program_run(program(2048), folder / "base");
  write_program_run(program(1 << 20), folder / "now");
  const auto base = source(folder / "base"), now = source(folder / "now");
  const auto compared = compare::compare(base, now, {});
  ASSERT_EQ(compared.cases.size(), 1U);
  EXPECT_EQ(compared.cases[0].state, compare::CaseState::kCompared) << compared.cases[0].reason;
  EXPECT_EQ(compared.cases[0].memory, statistics::Direction::kWorse);
  EXPECT_EQ(compared.cases[0].growth_note, "");
  EXPECT_EQ(compare::decide(compared).exit_code(), 4);
  write_program_run(program(2048), folder / "same");
  EXPECT_EQ(compare::decide(compare::compare(base, source(folder / "same"), {})).exit_code(), 0);
}

// What a recording lacks or does not add up to is in the verdict, which a gate and a table show.
TEST(ProgramRun, RecordingsThatAreNotWholeLowerTheVerdict) {
  using records::VerdictKind;
  const auto verdict_after = [](VerdictKind before, const std::vector<programs::Doubt>& doubts) {
    ProgramRun run;
    run.emulation.emplace().verdict.emplace().kind = before;
    add_doubts(run, doubts);
    return *run.emulation->verdict;
  };
  programs::Recorded recorded;
  auto& journals = recorded.journals;
  journals.resize(3);
  journals[1].pid = 7;
  journals[1].stopped = recording::Stopped::kNoSpace;
  journals[2].pid = 8;
  journals[2].disagreements = 2;
  const auto doubts = programs::doubts_of(recorded, {{8, 1 << 20}, {9, 1 << 20}}, true);
  ASSERT_EQ(doubts.size(), 3U);
  EXPECT_EQ(doubts[0].sentence, "process 7 was traced only in part: the disk is full");
  EXPECT_EQ(doubts[1].sentence,
            "process 8: at 2 events the allocator's own figure differs from the trace's");
  EXPECT_THAT(doubts[2].sentence, HasSubstr("process 9 took 1.0 MiB of the card"));
  EXPECT_EQ(verdict_after(VerdictKind::exact, doubts).kind, VerdictKind::unreliable);
  EXPECT_EQ(verdict_after(VerdictKind::exact, doubts).reasons.size(), 3U);
  EXPECT_EQ(verdict_after(VerdictKind::exact_if, {doubts[0]}).kind, VerdictKind::lower_bound);
  EXPECT_EQ(verdict_after(VerdictKind::upper_bound, {doubts[0]}).kind, VerdictKind::unreliable);
  EXPECT_EQ(verdict_after(VerdictKind::exact, {}).kind, VerdictKind::exact);
}

// On an emulated card it is known who used it; elsewhere anything may be missing.
TEST(ProgramRun, ALostRecordingIsADoubtWhereItsProcessUsedTheDevice) {
  programs::Recorded recorded;
  recorded.unread = {{.pid = 4, .why = "it is cut short"}, {.pid = 5, .why = "the disk was full"}};
  const auto sentences = [&](bool knows_all_users) {
    std::vector<std::string> found;
    for (const auto& doubt : doubts_of(recorded, {{5, 1 << 20}}, knows_all_users))
      found.push_back(doubt.sentence);
    return found;
  };
  const std::string user =
      "process 5 took 1.0 MiB of the card and was not traced: the disk was full";
  EXPECT_THAT(sentences(true), ::testing::ElementsAre(user));
  EXPECT_THAT(
      sentences(false),
      ::testing::ElementsAre(user, "process 4 used PyTorch and was not traced: it is cut short"));
}

// One that failed before it used PyTorch failed; one that ended well has nothing to show.
TEST(ProgramRun, WithoutARecordingHasItsExitCode) {
  const auto failed = programs::run_of({}, {"python3", "train.py"}, "cpu", {3});
  EXPECT_EQ(failed.status, records::Status::kCrashed);
  EXPECT_THAT(failed.reason, HasSubstr("the program ended with exit code 3; nothing was recorded"));
  EXPECT_EQ(programs::run_of({}, {"python3"}, "cpu", {0}).status, records::Status::kUnsupported);
  const std::vector<std::string> command{"python3"};
  EXPECT_THAT(programs::run_of({.any_silent = true}, command, "emulated:h100-80gb", {0}).reason,
              HasSubstr("the program used PyTorch on the CPU alone"));
  EXPECT_THAT(
      programs::run_of({.unread = {{.pid = 4, .why = "it is cut short"}}}, command, "cpu", {0})
          .reason,
      HasSubstr("nothing was recorded: it is cut short"));
}

}  // namespace
}  // namespace peakbench
