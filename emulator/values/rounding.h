// Products of float32 that a card may round to TF32.
#pragma once

#include "values/operators.h"

namespace peakbench::values {

// By the card, and the program's settings as they are now (torch.backends.cuda.matmul.allow_tf32
// and the like): whether a call of this operator may.
bool may_round_to_tf32(const Operator& op);

}  // namespace peakbench::values
