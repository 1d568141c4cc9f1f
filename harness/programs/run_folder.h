#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "records/case.h"
#include "records/run.h"
#include "trace/lines.h"
#include "trace/trace.h"

namespace peakbench::programs {

// A program's run and the recordings of its processes, as a folder for `report`, `compare`, `gate`
// and `history`. It has a run.json with one case of the kind `program`, and a trace for each
// process.

struct ProgramProcess {
  std::int64_t rank = 0;
  trace::Trace trace;
  std::vector<records::NcclCalls> nccl_calls = {};
};

struct ProgramRun {
  std::string name;                  // the script's: "train.py"; made safe for the case's id
  std::string device;                // cuda:0, cpu, emulated:h100-80gb
  std::vector<std::string> command;  // for the record
  // The part of the program that was traced, if not all: "steps-2-to-4". In the case's id, so that
  // it is never compared with a complete trace.
  std::string part;
  records::Status status = records::Status::kOk;
  std::string reason;  // one sentence; empty when ok
  std::optional<records::OutOfMemory> out_of_memory;
  std::optional<records::Emulation> emulation;
  std::vector<ProgramProcess> processes;
  nlohmann::json settings = nlohmann::json::object();     // of the run: how it was recorded
  nlohmann::json environment = nlohmann::json::object();  // where it ran: card, driver, torch
};

// What there may be in the folder: the same as for `peakbench run`.
enum class Folder {
  kNew,         // no run
  kOverwritten  // a run, which is deleted first
};

// Before the program runs: throws what write_program_run would of the folder.
void check_folder(const std::filesystem::path& folder, Folder there);

// Makes a case of this program: writes its traces to a run's folder, and returns the case for
// run.json. Its memory is taken from the process with the highest peak. With an inconsistent trace
// it has no figures, and the case's reason explains that. Throws std::invalid_argument for two
// processes of one rank, and otherwise what write_program_run() does.
records::CaseResult write_case(const ProgramRun& run, const records::CaseSpec& spec,
                               const std::filesystem::path& folder);

// Writes the folder of a run with only this case.
//
// Throws ConfigError if the folder contains a run or other `cases`, or cannot be written. Throws
// HostError if the disk fails.
records::CaseResult write_program_run(const ProgramRun& run, const std::filesystem::path& folder,
                                      Folder there = Folder::kNew);

// "my train.py" as "my-train.py": letters, digits and ._+=- stay; at most 60 characters, never
// empty. A name that is longer, or not of ASCII alone, gets a checksum, so that two stay two.
std::string safe_name(const std::string& name);

// What `peakbench emulate --json FILE` wrote, as a run with one case, to be compared and gated.

struct EmulatedFile {
  records::Run run;
  // That hold most at the peak; empty where the file does not tell them, or they are not of the
  // process in `run`.
  std::vector<trace::LineShare> lines;
};

// Reads the output of `peakbench emulate --json` as the case that `peakbench trace` of that program
// would make. Its memory is taken from the process with the most memory allocated by PyTorch. It
// has the peaks and, if the file contains them, the categories at the peak; but no requested bytes,
// phases or traces. Without PyTorch's own counts it has no memory.
//
// Nullopt: another kind of file, such as a run.json. Throws ConfigError with the path and the field
// if the file cannot be understood.
std::optional<EmulatedFile> read_emulated_json(const std::string& path);

}  // namespace peakbench::programs
