// Checks for finite values (isnan and what is computed from it) on tensors too large to compute.
// Unknown values are assumed to be finite, so all elements are equal.
#pragma once

#include <optional>
#include <vector>

#include "values/operators.h"

namespace peakbench::values {

// The tensor's storage holds such a check from now on.
void put_uniform(const at::Tensor& tensor, double element);

// The element that a call on such checks computes: by result, and by what it writes in place.
struct Uniform {
  std::vector<std::optional<double>> results, targets;
};
// Nothing where the call takes none of them that is large, or where its elements may differ.
std::optional<Uniform> call_uniformly(const Operator& op,
                                      c10::ArrayRef<const c10::IValue> arguments);

}  // namespace peakbench::values
