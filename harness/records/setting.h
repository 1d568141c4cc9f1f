#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace peakbench::records {

// What a case is of. What the kinds differ in is asked of their facts, never by comparing kinds.

enum class CaseKind {
  kStrategy,  // a model under a stack of strategies
  kProgram,   // a user's program, run unchanged
  kPython,    // a model under a strategy, both functions in Python
};

struct KindFacts {
  CaseKind kind = CaseKind::kStrategy;
  const char* word = "";      // in files and ids
  bool has_stack = true;      // strategies, `baseline` at least
  bool has_promise = true;    // about training, checked against a reference case
  bool has_times = true;      // its steps are ours to time
  bool has_lines = false;     // its memory is reported by lines of a user's Python code
  const char* no_times = "";  // a message why not; else empty
};

const KindFacts& facts_of(CaseKind kind);

std::string to_string(CaseKind kind);              // "strategy", "program", "python"
CaseKind case_kind_from(const std::string& word);  // throws std::invalid_argument that names all

// What identifies a case: a value of each axis (records/axes.h has the table of them).

// A model or a strategy as chosen: its id and the options that differ from their defaults, typed as
// the manifest says (integer, number, boolean, string). Text form: `lora,rank=16`.
struct Selection {
  std::string id;
  nlohmann::json options = nlohmann::json::object();
};

// The strategy that is always there: PyTorch as it is.
inline constexpr const char* kBaseline = "baseline";

// Of a program, which is not asked how many samples it takes in a step.
inline constexpr std::int64_t kUnknownBatch = 0;

struct Setting {
  CaseKind kind = CaseKind::kStrategy;
  Selection model;                    // of a program: its name
  std::vector<Selection> strategies;  // canonical order; {"baseline"} alone for the baseline; a
                                      // kind without a stack has none
  std::string device;                 // cpu, cuda:0, emulated:h100-80gb,memory=60GiB
  nlohmann::json device_options = nlohmann::json::object();  // cudnn, tf32, ...
  std::string dtype;                                         // fp32 | bf16
  std::int64_t batch_size = 1;
  std::optional<std::int64_t> sequence_length;  // language models only
  std::string allocator;  // as PYTORCH_CUDA_ALLOC_CONF has it; empty: PyTorch's own settings
  std::optional<std::int64_t> ranks;  // of one training, each with a batch; nullopt: one process
  std::string torch;                  // release of PyTorch, 2.15.0; empty: the run has one
  std::string build;                  // of Peakbench, a folder's name; empty: the run has one
  std::uint64_t seed = 0;
};

// The text form of what was chosen, the same in case ids, reports and messages.

// `lora,rank=16`: defaults are not in a Selection, so not here. Values that hold ',', '+', '"' or
// blanks are quoted. Whatever the names hold, valid UTF-8 or not, nothing is thrown.
std::string selection_text(const Selection& selection);
std::string stack_text(const std::vector<Selection>& strategies);

// A stack as a case id names it: `baseline` only alone or with options.
std::vector<Selection> without_plain_baseline(std::vector<Selection> strategies);

}  // namespace peakbench::records
