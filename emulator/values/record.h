// Recording what operators do to small tensors of the card.
#pragma once

#include <vector>

#include "values/gather.h"

namespace peakbench::values {

// After the operator has run: its results, or its targets, get their values.
void record_results(Call& call, const std::vector<c10::IValue>& results);
void record_targets(Call& call);

}  // namespace peakbench::values
