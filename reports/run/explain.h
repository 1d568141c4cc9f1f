#pragma once

#include <string>
#include <vector>

#include "reports/analysis/causes.h"
#include "trace/summary.h"

namespace peakbench::reports {

// A cause (reports/analysis/causes.h) in words, the same in every report. Plain text, safe to
// print.

// What differs between two sides: "*.momentum_buffer, bf16 -> fp32, 250 tensors",
// "encoder.layers.*, 24 tensors more", "heads.head, by aten::mm, 1 tensor in a larger block".
std::string cause_text(const analysis::Cause& cause);

// What one moment has: "encoder.layers.*, fp32, 24 tensors".
std::string held_text(const analysis::Cause& cause);

// Why a strategy lowered the peak, or did not, in one or two sentences made from two traces.

// What a strategy holds more and less than the reference, with the main cause of each. Compared at
// the reference's peak and at the strategy's own maximum of that phase. Empty if unknown.
using Causes = std::vector<analysis::CategoryCauses>;

// `The peak is 5.739 GiB, in the optimizer step (aten::_foreach_sqrt).`
std::string tell_peak(const trace::Anatomy& anatomy);

// Plain text in UTF-8, no markup, e.g. `In the optimizer step, where baseline peaks,
// foreach-off uses 1.103 GiB less temporary memory. The peak is now 4.636 GiB (−19.2 %),
// still in the optimizer step (aten::div).` The names are what the two are called. A category that
// `causes` has is followed by what most of its change is: `(*.exp_avg, fp32 -> bf16, 250 tensors)`.
std::string explain(const trace::Anatomy& reference, const trace::Anatomy& strategy,
                    const std::string& reference_name, const std::string& strategy_name,
                    const Causes& causes = {});

}  // namespace peakbench::reports
