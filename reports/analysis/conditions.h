// What two runs must have in common for a difference between them to be the code's: which PyTorch,
// which driver, how many steps. One rule for whoever compares runs or draws them over time.
#pragma once

#include <cstdint>
#include <string>

#include "result/run.h"

namespace peakbench::analysis {

struct Conditions {
  std::string libtorch, libtorch_git_version, libtorch_cuda, driver;  // empty: unknown
  std::int64_t steps = 0;                                             // 0: unknown

  bool operator==(const Conditions&) const = default;
};

// A real card's own driver where there is one; else the CUDA that the driver is for: "CUDA 13.0".
Conditions conditions_of(const result::Run& run);

// "LibTorch 2.11.0 → 2.12.0; driver 550 → 560"; empty where they are equal.
std::string difference(const Conditions& before, const Conditions& now);
// The same of what both know: what one does not know is not known to differ.
std::string known_difference(Conditions before, Conditions now);

}  // namespace peakbench::analysis
