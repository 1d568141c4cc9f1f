// What a process needs in its environment so that small tensors of the emulated card have values.
#pragma once

#include <optional>
#include <string>

#include "host/environment.h"
#include "host/torch_in_use.h"

namespace peakbench::emulator {

// How `peakbench emulate` treats values.
struct ValuesRequest {
  bool compute = true;
  std::string assume;  // "nonzero=all", "nonzero=none" or empty
};

// Throws ConfigError for an assumption that there is not.
Environment values_environment(const ValuesRequest& request, const Installation& installation,
                               const std::optional<TorchInUse>& torch);

}  // namespace peakbench::emulator
