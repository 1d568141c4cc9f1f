// The files of a case: their folder, below a run's, and their names. The process of rank 0 has the
// plain names, another says its rank in them: trace.sqlite, trace.1.sqlite.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace peakbench::result {

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

// Losses and parameters that other cases are held against; there while these are to run.
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

}  // namespace peakbench::result
