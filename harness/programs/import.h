#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/run_folder.h"

namespace peakbench::programs {

// Which rank's a file is, by its name. For the module's own use. Pure.

struct RankFile {
  std::int64_t rank = 0;
  std::string name;

  bool operator==(const RankFile&) const = default;
};

struct RankFiles {
  std::vector<RankFile> files;  // by rank
  bool is_sure = false;         // every name says `rank` and a number of its own
};

// The first of these that holds of all names, in this order: the number behind `rank` (not behind
// `local_rank`, unless there is no other) is a different one in each; the names differ in one
// number only, which is not a step's or a time's; else the order of the names, numbers as numbers.
RankFiles ranks_of(std::vector<std::string> names);

// Somebody's memory snapshots, made by torch.cuda.memory._dump_snapshot, as a program's run.

// `path`: a snapshot, or a folder of one a rank (`*.pickle`, `*.pkl`), whose ranks their names say
// (import.h). `name`: of the program; empty: the script's that most stacks begin in, else the
// file's. `card`: the emulated card that they were made on; empty: a real one. What was inferred or
// is not known stands in the run's settings.
//
// Throws ConfigError, one sentence: there is no such file, no snapshot in the folder, no snapshot
// (read_snapshot()), nothing was allocated, no such card (parse_card()).
ProgramRun import_snapshots(const std::string& path, const std::string& name = "",
                            const std::string& card = "");

}  // namespace peakbench::programs
