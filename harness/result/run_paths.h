// Names and paths that a run.json says. The file may be damaged, or made to do harm: nothing that
// it names is read, written or deleted outside its own folder.
#pragma once

#include <string>

#include "result/case.h"

namespace peakbench::result {

// One component of a path that may be a file's name wherever it is put: no slash, no control
// character, not hidden, no option by its looks, not too long for an ending.
bool is_file_name(const std::string& text);

// Relative, and below what it is relative to, as far as the text says.
bool is_path_inside(const std::string& text);

// The folder of a run that is named by it or by its run.json.
std::string run_folder_of(const std::string& run);

// Of its largest rank, as all that is shown of a case (ranks.h).
bool has_trace(const CaseResult& result);

// That trace, for every reader; empty where the case has none or the run has
// no folder (""). It need not be there. Throws RunFileError: outside the run's folder, be it
// through a link; a folder, a named pipe, a device.
std::string trace_file(const CaseResult& result, const std::string& run_folder);

}  // namespace peakbench::result
