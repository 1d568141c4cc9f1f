#pragma once

#include <vector>

#include "values/operators.h"
#include "values/value.h"

namespace peakbench::values {

// Operators with several valid results for the given values, where PyTorch does not define which.

struct Unspecified {
  int result = -1;  // which of the operator's; -1: all that it makes or writes
  const char* what = "";
  bool unsure = false;  // so many that the results are unknown
};

// Of a call that was computed: what it was given, and what came of it.
std::vector<Unspecified> unspecified_in(const Node& node, const Stack& arguments,
                                        const Stack& results);

// Products of float32 that a card may round to TF32.

// By the card, and the program's settings as they are now (torch.backends.cuda.matmul.allow_tf32
// and the like): whether a call of this operator may.
bool may_round_to_tf32(const Operator& op);

}  // namespace peakbench::values
