// What an option of the type `parts` asks of a model: some of its linear layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peakbench/model.h"

namespace peakbench {

struct ChosenLinear {
  NamedLinear linear;
  std::optional<std::int64_t> number;  // the part's own: 16 in "q_proj:mlp=16"
};

// The layers that the option's value names, in the model's order. `automatic`: what `auto` stands
// for, the first of these values of which the model has a part, as far as it has them. Throws
// Unsupported, with the model's reason, for a named part that it does not have, and for `auto`
// where it has none.
std::vector<ChosenLinear> choose_linears(Model& model, const std::string& value,
                                         const std::vector<std::string>& automatic);

// Attention's projections, queries, keys and values in layers of their own or in one; the MLP where
// attention has no layers.
inline const std::vector<std::string> kAttentionOrMlp = {
    "q_proj:k_proj:v_proj:qkv_proj:output_proj", "mlp"};

}  // namespace peakbench
