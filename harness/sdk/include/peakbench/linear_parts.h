// Selects linear layers of a model by the value of an option of the type `parts`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peakbench/model.h"

namespace peakbench {

struct ChosenLinear {
  NamedLinear linear;
  std::optional<std::int64_t> number;  // the number given for this part: 16 in "q_proj:mlp=16"
};

// Returns the layers that the option's value names, in the model's order.
//
// `automatic` lists the values that `auto` can stand for, in order of preference. `auto` selects
// the first value of which the model has at least one part, and skips the parts it lacks.
//
// Throws Unsupported if the value names a part that the model lacks; the message has the model's
// reason. Throws Unsupported for `auto` if the model has no part of any value.
std::vector<ChosenLinear> choose_linears(Model& model, const std::string& value,
                                         const std::vector<std::string>& automatic);

// Selects the projections of attention, with queries, keys and values in separate layers or in one.
// If attention has no linear layers, it selects the MLP.
inline const std::vector<std::string> kAttentionOrMlp = {
    "q_proj:k_proj:v_proj:qkv_proj:output_proj", "mlp"};

}  // namespace peakbench
