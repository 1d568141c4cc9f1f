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

// Ranks of files, by the first of these rules that fits all names:
//
// 1. The number after `rank` is different in each. (After `local_rank` only if there is no other.)
// 2. The names differ in one number only, which is not that of a step or a time.
// 3. The order of the names, with numbers compared as numbers.
RankFiles ranks_of(std::vector<std::string> names);

// Imports a user's memory snapshots, made by torch.cuda.memory._dump_snapshot, as a program's run.

// `path`: a snapshot, or a folder with one for each rank (`*.pickle`, `*.pkl`), named by rank
// (import.h). `name`: of the program; empty: the script in which most stacks begin, else the file.
// `card`: the emulated card on which they were made; empty: a real one. The run's settings list
// inferred and unknown facts.
//
// Throws ConfigError, one sentence: there is no such file, no snapshot in the folder, no snapshot
// (read_snapshot()), nothing was allocated, no such card (parse_card()).
ProgramRun import_snapshots(const std::string& path, const std::string& name = "",
                            const std::string& card = "");

}  // namespace peakbench::programs
