// What is read of two run folders that are compared: a run has hundreds of traces, and what is the
// same needs no explanation.
#include <gtest/gtest.h>

#include <filesystem>

#include "records/run_files.h"
#include "reports/compare/render.h"
#include "reports/trends/source.h"
#include "support/fake_runs.h"
#include "support/watched_file.h"

namespace peakbench::trends {
namespace {

using namespace peakbench::testing;
using compare::Direction;

// Two cases with their traces; `kept`: what the second of them keeps alive.
class Folder {
 public:
  explicit Folder(bool kept) {
    auto run = plain_source("", {}).run;
    run.cases = {traced("same", tiny_trace(false)), traced("other", tiny_trace(kept))};
    records::write_run(run, folder_.path());
  }

  std::string path() const { return folder_.path(); }
  std::string trace(std::size_t index) const {
    return records::trace_file(records::read_run(path()).cases.at(index), path());
  }

 private:
  records::CaseResult traced(const std::string& model, const trace::Trace& trace) {
    auto result = fake_case(model + "/baseline/emulated:h100-80gb/fp32/b1", 0);
    result.memory = trace::summarise(trace);
    records::Rank rank;
    rank.trace = "cases/" + result.spec.slug + "/trace.sqlite";
    result.ranks = {rank};
    const auto path = std::filesystem::path(folder_ / rank.trace);
    std::filesystem::create_directories(path.parent_path());
    trace::write_trace(trace, path.string());
    return result;
  }

  ScratchFolder folder_;
};

struct Compared {
  compare::Comparison comparison;
  std::string page;
};

Compared compared(const Folder& base, const Folder& now) {
  const auto before = read_source(base.path(), ""), after = read_source(now.path(), "");
  Compared found{compare::compare(before, after, {}), ""};
  compare::PageOptions options;
  options.builtin_template_directory = PEAKBENCH_TEMPLATES;
  found.page = compare::render_html(before, after, found.comparison, options);
  return found;
}

TEST(ComparedFolders, OnlyTracesOfCasesThatDifferAreOpened) {
  const Folder base(false), now(true);
  WatchedFile same_base(base.trace(0)), same_now(now.trace(0));
  WatchedFile other_base(base.trace(1)), other_now(now.trace(1));
  const auto found = compared(base, now);
  ASSERT_EQ(found.comparison.cases.size(), 2U);
  EXPECT_EQ(found.comparison.cases[0].memory, Direction::kSame);
  EXPECT_EQ(found.comparison.cases[1].memory, Direction::kWorse);
  EXPECT_EQ(found.comparison.cases[1].growth.size(), 3U);
  EXPECT_EQ(found.comparison.cases[1].growth_note, "");
  EXPECT_TRUE(other_base.was_opened());
  EXPECT_TRUE(other_now.was_opened());
  EXPECT_FALSE(same_base.was_opened());
  EXPECT_FALSE(same_now.was_opened());
}

TEST(ComparedFolders, WhereNothingDiffersNoTraceIsOpened) {
  const Folder base(false), now(false);
  WatchedFile first(base.trace(0)), second(now.trace(1));
  EXPECT_EQ(compare::count_memory(compared(base, now).comparison, Direction::kSame), 2U);
  EXPECT_FALSE(first.was_opened());
  EXPECT_FALSE(second.was_opened());
}

// A tolerance that lets a difference pass asks for no explanation of it.
TEST(ComparedFolders, WhatThePolicyLetsPassIsNotExplained) {
  const Folder base(false), now(true);
  WatchedFile other(now.trace(1));
  compare::Policy policy;
  policy.requested.bytes = policy.allocated.bytes = 1 << 20;
  const auto found =
      compare::compare(read_source(base.path(), ""), read_source(now.path(), ""), policy);
  EXPECT_EQ(found.cases[1].memory, Direction::kSame);
  EXPECT_FALSE(other.was_opened());
}

}  // namespace
}  // namespace peakbench::trends
