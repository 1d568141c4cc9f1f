// The files of cases that become one run's: found in the folders of their runs, and copied.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/incoming.h"
#include "result/case.h"

namespace peakbench::executor {

// A file of a case.
struct FileToCopy {
  std::string run_folder;  // of the run that measured the case
  std::string path;        // below it
  std::string slug, name;  // where it goes
};

struct FilesToCopy {
  std::vector<FileToCopy> files;
  std::vector<std::string> absent;  // traces that run.json names and nobody has; paths
};

// Adds the traces that the case names, with their snapshots and logs, and names the traces as they
// will be called. All is looked at before anything is written. Throws ConfigError: a link, in
// whose place anybody's file would be copied, no regular file, not readable.
void find_files(result::CaseResult& one, const std::string& run_folder, FilesToCopy& found);

// False where `cancelled`, which is asked all the time, said so. Throws what files::copy_file()
// does, and what find_files() does, should something have changed since.
bool copy_files(const std::vector<FileToCopy>& files, const launch::IncomingCases& to,
                const std::function<bool()>& cancelled);

}  // namespace peakbench::executor
