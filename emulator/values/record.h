// Recording what operators do to small tensors of the card.
#pragma once

#include "values/gather.h"

namespace peakbench::values {

// After the operator has run: its results, or its targets, get their values.
void record_results(Call& call, const std::vector<c10::IValue>& results);
void record_targets(Call& call);
// A value in place of one that cannot be computed: floating-point numbers have none, so that what
// follows from them costs nothing; truths and indices have.
void put_substitute(const Operator& op, const at::Tensor& tensor, std::int64_t range);

}  // namespace peakbench::values
