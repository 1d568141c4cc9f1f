// What identifies a case: a value of each axis (result/axes.h has the table of them).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "result/case_kind.h"

namespace peakbench::result {

// A model or a strategy as chosen: its id and the options that differ from their defaults, typed as
// the manifest says (integer, number, boolean, string). Text form: `lora,rank=16`.
struct Selection {
  std::string id;
  nlohmann::json options = nlohmann::json::object();
};

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
  std::string torch;      // release of PyTorch, 2.15.0; empty: the run has one
  std::string build;      // of Peakbench, a folder's name; empty: the run has one
  std::uint64_t seed = 0;
};

}  // namespace peakbench::result
