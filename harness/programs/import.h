#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "programs/rank_files.h"
#include "programs/run_folder.h"

namespace peakbench::programs {

// Imports a user's memory snapshots, made by torch.cuda.memory._dump_snapshot, as a program's run.

// The files of `path`: a snapshot, or a folder with one for each rank (`*.pickle`, `*.pkl`), named
// by rank. Throws ConfigError, one sentence: there is no such file, no snapshot in the folder, two
// of one rank and step.
RankFiles snapshot_files(const std::string& path);

// `files`: of snapshot_files(path). `name`: of the program; empty: the script in which most stacks
// begin, else the file. `card`: the emulated card on which they were made; empty: a real one. The
// run's settings list inferred and unknown facts.
//
// Throws ConfigError, one sentence: no snapshot (read_snapshot()), nothing was allocated, no such
// card (parse_card()).
ProgramRun import_snapshots(const std::string& path, const RankFiles& files,
                            const std::string& name = "", const std::string& card = "");

}  // namespace peakbench::programs
