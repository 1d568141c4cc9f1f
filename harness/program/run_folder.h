// A program that ran, with what was recorded of each of its processes, as a folder that `report`,
// `compare`, `gate` and `history` read: run.json with one case of the kind `program`, and a trace a
// process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "result/case.h"
#include "trace/trace.h"

namespace peakbench::program {

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
  result::Status status = result::Status::kOk;
  std::string reason;  // one sentence for people; empty when ok
  std::optional<result::OutOfMemory> out_of_memory;
  std::optional<result::Emulation> emulation;
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

// The case of a program that was run by itself.
result::CaseSpec spec_of_program(const std::string& name, const std::string& device);

// A case of this program in a run's folder: writes its traces there and gives it as it stands in
// run.json. Its memory is that of the process with the highest peak. A trace that does not add up
// has no figures, and the case's reason says why. Two processes of one rank are a
// std::invalid_argument. Throws as write_program_run() does.
result::CaseResult write_case(const ProgramRun& run, const result::CaseSpec& spec,
                              const std::filesystem::path& folder);

// The folder of a run of this case alone.
//
// Throws ConfigError: the folder holds a run already, somebody else's `cases`, or cannot be
// written; HostError: the disk refused.
result::CaseResult write_program_run(const ProgramRun& run, const std::filesystem::path& folder,
                                     Folder there = Folder::kNew);

// "my train.py" as "my-train.py": letters, digits and ._+=- stay; at most 60 characters, never
// empty. A name that is longer, or not of ASCII alone, gets a checksum, so that two stay two.
std::string safe_name(const std::string& name);

}  // namespace peakbench::program
