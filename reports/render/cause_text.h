// A cause (reports/analysis/causes.h) in words, the same wherever one is told. Plain text, safe to
// show.
#pragma once

#include <string>

#include "reports/analysis/causes.h"

namespace peakbench::reports {

// What differs between two sides: "*.momentum_buffer, bf16 -> fp32, 250 tensors",
// "encoder.layers.*, 24 tensors more", "heads.head, by aten::mm, 1 tensor in a larger block".
std::string cause_text(const analysis::Cause& cause);

// What one moment has: "encoder.layers.*, fp32, 24 tensors".
std::string held_text(const analysis::Cause& cause);

}  // namespace peakbench::reports
