// For a process that is to be forked for each job: loaded, and not used.
#pragma once

#include <string>

namespace peakbench::device {

// Opens what make_device() would for a card. What cannot be opened is left to who needs it, and
// says why.
void load_cuda();

// Why a fork of this process could not use CUDA; empty: it could.
std::string why_not_forked();

}  // namespace peakbench::device
