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

// A program that ran, with what was recorded of each of its processes, as a folder that `report`,
// `compare`, `gate` and `history` read: run.json with one case of the kind `program`, and a trace a
// process.

struct ProgramProcess {
  std::int64_t rank = 0;
  trace::Trace trace;
};

struct ProgramRun {
  std::string name;                  // the script's: "train.py"; made safe for the case's id
  std::string device;                // cuda:0, cpu, emulated:h100-80gb
  std::vector<std::string> command;  // for the record
  // What of it is there, where it is not all: "steps-2-to-4". Part of the case's id, so that it is
  // never compared with the whole.
  std::string part;
  records::Status status = records::Status::kOk;
  std::string reason;  // one sentence for people; empty when ok
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

// A case of this program in a run's folder: writes its traces there and gives it as it stands in
// run.json. Its memory is that of the process with the highest peak. A trace that does not add up
// has no figures, and the case's reason says why. Two processes of one rank are a
// std::invalid_argument. Throws as write_program_run() does.
records::CaseResult write_case(const ProgramRun& run, const records::CaseSpec& spec,
                               const std::filesystem::path& folder);

// The folder of a run of this case alone.
//
// Throws ConfigError: the folder holds a run already, somebody else's `cases`, or cannot be
// written; HostError: the disk refused.
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

// The case is that of the program which `peakbench trace` would make; its memory is that of the
// process whose PyTorch had the most allocated, and has the peaks and, where the file tells what
// fills them, the categories at the peak: no bytes asked for, no phases or traces. Without
// PyTorch's own counts it has no memory.
//
// Nullopt: the file is something else, such as a run.json. Throws ConfigError with the path and the
// field where it is one that cannot be understood.
std::optional<EmulatedFile> read_emulated_json(const std::string& path);

}  // namespace peakbench::programs
