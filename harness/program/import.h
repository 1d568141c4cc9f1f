// Somebody's memory snapshots, made by torch.cuda.memory._dump_snapshot, as a program's run.
#pragma once

#include <string>

#include "program/run_folder.h"

namespace peakbench::program {

// `path`: a snapshot, or a folder of one a rank (`*.pickle`, `*.pkl`), whose ranks their names say
// (rank_names.h). `name`: of the program; empty: the script's that most stacks begin in, else the
// file's. `card`: the emulated card that they were made on; empty: a real one. What was inferred or
// is not known stands in the run's settings.
//
// Throws ConfigError, one sentence: there is no such file, no snapshot in the folder, no snapshot
// (read_snapshot()), nothing was allocated, no such card (parse_card()).
ProgramRun import_snapshots(const std::string& path, const std::string& name = "",
                            const std::string& card = "");

}  // namespace peakbench::program
