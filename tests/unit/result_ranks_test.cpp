// Whose figures a case's are, and what its files are called.
#include <gtest/gtest.h>

#include "records/case.h"
#include "records/run_files.h"

namespace peakbench::records {
namespace {

Rank rank_with(std::int64_t peak) {
  Rank rank;
  rank.memory.emplace().peak_allocated_bytes = peak;
  return rank;
}

Rank traced(const std::string& trace) {
  Rank rank;
  rank.trace = trace;
  return rank;
}

TEST(Ranks, TheLargest) {
  struct Row {
    std::vector<Rank> ranks;
    std::size_t largest;
  };
  const std::vector<Row> table{
      {{}, 0},
      {{rank_with(1)}, 0},
      {{traced("")}, 0},
      {{rank_with(1), rank_with(3), rank_with(2)}, 1},
      {{rank_with(3), rank_with(3)}, 0},
      {{traced("a"), rank_with(0)}, 1},
      {{traced(""), traced("b"), traced("c")}, 1},
  };
  for (std::size_t i = 0; i < table.size(); ++i)
    EXPECT_EQ(largest_rank(table[i].ranks), table[i].largest) << i;
}

TEST(Ranks, WhatIsShownIsTheLargests) {
  CaseResult result;
  EXPECT_FALSE(headline_rank(result).memory);
  result.ranks = {rank_with(1), rank_with(2)};
  EXPECT_EQ(headline_rank(result).memory->peak_allocated_bytes, 2);
}

TEST(CaseFiles, Names) {
  EXPECT_EQ(case_folder("a-0b"), "cases/a-0b");
  EXPECT_EQ(name_of(CaseFile::kTrace), "trace.sqlite");
  EXPECT_EQ(name_of(CaseFile::kTrace, 1), "trace.1.sqlite");
  EXPECT_EQ(name_of(CaseFile::kThroughputResult, 12), "throughput.12.result.json");
  EXPECT_EQ(snapshot_beside("/r/cases/a/trace.sqlite"), "/r/cases/a/snapshot.pickle");
  EXPECT_EQ(snapshot_beside("/r/cases/a/trace.7.sqlite"), "/r/cases/a/snapshot.7.pickle");
  EXPECT_EQ(snapshot_beside("/r/mine"), "/r/snapshot.pickle");
}

TEST(CaseFiles, RanksOfNames) {
  EXPECT_EQ(rank_of(CaseFile::kTrace, "trace.sqlite"), 0U);
  EXPECT_EQ(rank_of(CaseFile::kTrace, "trace.3.sqlite"), 3U);
  for (const char* other : {"", "trace", "trace..sqlite", "trace.0.sqlite", "trace.01.sqlite",
                            "trace.x.sqlite", "trace.1x.sqlite", "trace.-1.sqlite", "worker.log",
                            "trace.1.sqlite.partial", "trace.99999999999999999999.sqlite"})
    EXPECT_EQ(rank_of(CaseFile::kTrace, other), std::nullopt) << other;
}

TEST(CaseFiles, OursAndOthers) {
  for (const char* ours :
       {"trace.sqlite", "trace.sqlite.partial", "snapshot.pickle", "worker.log", "memory.job.json",
        "memory.result.json", "throughput.job.json", "throughput.result.json", "parameters.tmp",
        "trace.1.sqlite", "trace.1.sqlite.partial", "worker.2.log", "memory.1.job.json"})
    EXPECT_TRUE(is_case_file(ours)) << ours;
  for (const char* other : {"notes.txt", "worker.log.partial", "my.trace.sqlite", "memory.json"})
    EXPECT_FALSE(is_case_file(other)) << other;
}

}  // namespace
}  // namespace peakbench::records
