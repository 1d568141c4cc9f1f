// What NCCL's calls do for a rank whose peers do not exist: all are taken to be like it.
#pragma once

#include "nccl/operations.h"

namespace peakbench::emulator::nccl {

int run_alone(const Communicator& self, const Collective& what);
int split_alone(const Communicator& parent, int color, int key, CommunicatorPtr& out);

}  // namespace peakbench::emulator::nccl
