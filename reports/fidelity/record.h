// Records of fidelity: a peak that somebody measured on a real card, the configuration it was
// measured with, and what an emulated card gives for the same. The form is in docs/fidelity.md.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "result/published.h"
#include "result/run.h"

namespace peakbench::fidelity {

inline constexpr const char* kSchema = "peakbench.fidelity/1";

// Ours, of the figure's kind.
struct Emulated {
  std::int64_t bytes = 0;
  std::string phase = {};                            // of the peak; empty where it is not known
  std::string at_peak = {};                          // what was alive there, in a few words
  std::string verdict = {};                          // of a program: how far `bytes` can be trusted
  std::map<std::string, std::string> versions = {};  // {"torch", "2.11.0"}
  std::string date = {};                             // YYYY-MM-DD
  // Of a program: the most that CUDA gave to all its processes together, of each card that was used
  // (what PyTorch reserved, and what others allocated); without the CUDA context.
  std::vector<std::int64_t> peak_used_bytes = {};
};

// The whole card's memory as nvidia-smi showed it, which the publisher measured beside the figure;
// of several cards, their mean.
struct DeviceMemory {
  double value = 0;
  std::string unit;
};

// On the way from the publisher's program to a case of ours: what is changed beside all that was
// changed before, and the peak then.
struct Step {
  std::string changed;                      // "RMSNorm as one kernel"
  std::vector<std::string> arguments = {};  // that the program gets for it, beside its own
  std::int64_t bytes = 0;                   // 0: not measured yet
  std::string phase = {};                   // of the peak; empty where it is not known
};

// What a figure is the peak of.
inline constexpr const char* kTrainingStep = "training_step";  // whole ones
inline constexpr const char* kOperator = "operator";           // a single one, forward and backward
inline constexpr const char* kMeasures[] = {kTrainingStep, kOperator};

struct Record {
  // Of a case, or, where `program` is not empty, of what it does: its model and strategy are words.
  result::Published figure;
  std::string measures = kTrainingStep;  // one of kMeasures
  std::optional<DeviceMemory> device_memory = {};
  std::vector<std::string> program = {};             // run by `peakbench emulate`
  std::map<std::string, std::string> packages = {};  // that it is run with
  std::string streams = {};                          // of the card, where they lag: soon or late
  std::optional<Emulated> emulated = {};
  std::vector<Step> steps = {};  // of a program
  std::string reason = {};       // why there is no `emulated`
  std::string where = {};        // "FILE:LINE", of one that was read
};

// Figures of a publisher that cannot be measured again here.
struct NotRebuilt {
  std::string source, url, reason;
  std::int64_t figures = 1;
};

struct Records {
  std::vector<Record> records;
  std::vector<NotRebuilt> not_rebuilt;
};

// A file of records, or of one alone. Throws ConfigError with file and line: not JSON, a field that
// is missing, unknown or wrong (unit, card, kind of figure, grade).
Records read_records(const std::string& path);
Records records_from(std::string_view text, const std::string& path);

// The graded figures of a run, each beside the case that it is about; with a reason where there is
// no such case, or it did not end ok.
Records records_of(const result::Run& run);

// What a case of the run measured, as a record's `emulated`: it has such a figure (bytes_of_kind).
Emulated emulated_by(const result::CaseResult& result, const std::string& metric,
                     const result::Run& run);

// In place of the record of the same figure, card and configuration, or at the end.
void add(Records& records, const Record& record);

// For messages: "IBM: llama-3-8b / checkpointing / bf16 b4 s4096".
std::string name_of(const Record& record);
// Without the publisher; a program's file and arguments.
std::string configuration_of(const Record& record);

nlohmann::ordered_json to_json(const Records& records);

}  // namespace peakbench::fidelity
