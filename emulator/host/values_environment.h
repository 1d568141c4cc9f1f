// What a process needs in its environment so that small tensors of the emulated card have values.
#pragma once

#include <string>

#include "host/environment.h"

namespace peakbench::emulator {

// How `peakbench emulate` treats values.
struct ValuesRequest {
  bool compute = true;
  std::string assume;  // "nonzero=all", "nonzero=none" or empty
};

// Throws ConfigError for an assumption that there is not.
Environment values_environment(const ValuesRequest& request, const Installation& installation);

}  // namespace peakbench::emulator
