// What a process needs in its environment so that small tensors of the emulated card have values.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "host/installation.h"
#include "host/values_library.h"
#include "process/environment.h"
#include "pytorch/torch_in_use.h"

namespace peakbench::emulator {

// How `peakbench emulate` treats values.
struct ValuesRequest {
  bool compute = true;
  std::string assume;  // "nonzero=all", "nonzero=none" or empty
  int guess = 0;       // which plausible values stand in for unknown ones; 0: the usual ones
};

// May compile a library for the program's PyTorch: `cancelled` is asked meanwhile. Throws
// ConfigError for an assumption that there is not.
process::Environment values_environment(const ValuesRequest& request,
                                        const Installation& installation,
                                        const std::optional<pytorch::TorchInUse>& torch,
                                        const std::function<bool()>& cancelled);
// The same with a library that there is.
process::Environment values_environment(const ValuesRequest& request,
                                        const pytorch::LibraryInUse& library);

}  // namespace peakbench::emulator
