// For a process that is to be forked for each job: loaded, and not used.
#pragma once

#include <string>

#include "result/device.h"

namespace peakbench::device {

// Opens the module that make_device() would for a device of the kind. What cannot be opened is left
// to who needs it, and says why.
void load_module_of(result::DeviceKind kind);

// Why a fork of this process could not use CUDA; empty: it could.
std::string why_not_forked();

}  // namespace peakbench::device
