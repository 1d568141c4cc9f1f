#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "records/case.h"

namespace peakbench::records {

// The files of a case: their folder, below a run's, and their names. The process of rank 0 has the
// plain names, another says its rank in them: trace.sqlite, trace.1.sqlite.

inline constexpr const char* kCasesFolder = "cases";

// Of each process.
enum class CaseFile {
  kTrace,
  kSnapshot,  // the trace for PyTorch's own tools
  kLog,       // what the processes of this rank printed
  kMemoryJob,
  kMemoryResult,
  kThroughputJob,
  kThroughputResult,
};

// Losses and parameters of a reference case; deleted when the cases compared with it have run.
inline constexpr const char* kParametersFile = "parameters.tmp";

// Of a program at work: what its processes record until it is made a trace of.
inline constexpr const char* kJournalsFolder = "journals.tmp";

// "cases/SLUG", relative to the run's folder.
std::string case_folder(const std::string& slug);

std::string name_of(CaseFile file, std::size_t rank = 0);

// Whose file has this name; nullopt: it is no such file.
std::optional<std::size_t> rank_of(CaseFile file, const std::string& name);

// Beside a trace, of the same rank.
std::string snapshot_beside(const std::string& trace_path);

// One of a case's, whatever the rank, or what a killed process left half written of one.
bool is_case_file(const std::string& name);

// Names and paths that a run.json says. The file may be damaged, or made to do harm: nothing that
// it names is read, written or deleted outside its own folder.

// Whether the text is a safe file name in any folder: one path component without slashes and
// control characters, not hidden, not like an option, short enough for an ending.
bool is_file_name(const std::string& text);

// Relative, and below what it is relative to, as far as the text says.
bool is_path_inside(const std::string& text);

// The folder of a run that is named by it or by its run.json.
std::string run_folder_of(const std::string& run);

// Of its largest rank, as all that is shown of a case (case.h).
bool has_trace(const CaseResult& result);

// That trace, for every reader; empty where the case has none or the run has
// no folder (""). It need not be there. Throws RunFileError: outside the run's folder, be it
// through a link; a folder, a named pipe, a device.
std::string trace_file(const CaseResult& result, const std::string& run_folder);

}  // namespace peakbench::records
