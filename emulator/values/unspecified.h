#pragma once

#include <string_view>
#include <vector>

#include "values/operators.h"
#include "values/value.h"

namespace peakbench::values {

// Operators that give one of several results, where PyTorch does not say which: for the very values
// at hand.

struct Unspecified {
  int result = -1;  // which of the operator's; -1: all that it makes or writes
  const char* what = "";
  bool unsure = false;  // so much that the results are not known
};
using Stack = std::vector<c10::IValue>;

// Of a call that was computed: what it was given, and what came of it.
std::vector<Unspecified> unspecified_in(const Node& node, const Stack& arguments,
                                        const Stack& results);

// The argument of this name; null where the operator has none.
const c10::IValue* argument_of(const Node& node, const Stack& arguments, std::string_view name);

// By kind of operator; `name` is the operator's, without a `_` at its end.
using Found = std::vector<Unspecified>;
// Those that order or take equal values: sort, topk, median, kthvalue, mode.
void look_for_ties(std::string_view name, const Node& node, const Stack& arguments,
                   const Stack& results, Found& found);
// Those that put several values in one place.
void look_for_duplicates(std::string_view name, const Node& node, const Stack& arguments,
                         const Stack& results, Found& found);
// Factorisations that are not unique.
void look_for_factors(std::string_view name, Found& found);
// Products that may be computed in TF32.
void look_for_rounding(std::string_view name, const Node& node, const Stack& arguments,
                       Found& found);

// Products of float32 that a card may round to TF32.

// By the card, and the program's settings as they are now (torch.backends.cuda.matmul.allow_tf32
// and the like): whether a call of this operator may.
bool may_round_to_tf32(const Operator& op);

}  // namespace peakbench::values
