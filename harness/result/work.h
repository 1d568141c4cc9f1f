// What a step makes a device do, as counted: no times.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace peakbench::result {

// What the host asked of an emulated card. Another device does not tell.
struct DeviceWork {
  std::int64_t kernel_launches = 0;  // and the calls of vendors' libraries that compute
  std::int64_t copies_to_device = 0, copies_to_device_bytes = 0;
  std::int64_t copies_to_host = 0, copies_to_host_bytes = 0;
  std::int64_t copies_in_device = 0, copies_in_device_bytes = 0;
};

struct WorkCounts {
  std::int64_t operators = 0;         // of PyTorch that did work; views and allocations do none
  std::int64_t flops = 0;             // by the formulas of torch.utils.flop_counter
  std::int64_t recomputed_flops = 0;  // of these, in a block that runs once more
  std::map<std::string, std::int64_t> flops_by_precision;  // "fp32", "tf32", "bf16", ...
  std::int64_t read_bytes = 0, written_bytes = 0;          // by these operators
  std::optional<DeviceWork> device;
};

// A step is no shorter on a card of these rates, which its vendor publishes. Nobody measured it,
// and it predicts nothing.
struct StepBound {
  std::int64_t least_step_ns = 0;
  std::int64_t memory_bytes_per_second = 0;
  std::map<std::string, std::int64_t> flops_per_second;  // by precision
};

// Of one step, from its forward to the end of its optimizer step; making the batch is no part.
struct StepWork {
  std::int64_t step = 0;  // 0-based
  WorkCounts total;
  std::map<std::string, WorkCounts> phases;
  // Operators that multiply matrices and have no formula -> calls: their FLOPs are missing.
  std::map<std::string, std::int64_t> without_formula;
  std::optional<StepBound> bound;
};

}  // namespace peakbench::result
