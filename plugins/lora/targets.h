// Which linear layers get an adapter.
#pragma once

#include <string>
#include <vector>

#include "peakbench/model.h"

namespace peakbench::lora {

// The model's layers that `targets` names: parts joined by ':', or `auto`. Throws OptionError for a
// name that is no part, Unsupported (with the model's reason) for a part this model does not have.
std::vector<NamedLinear> target_layers(Model& model, const std::string& targets);

}  // namespace peakbench::lora
