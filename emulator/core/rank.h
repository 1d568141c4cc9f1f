// Which rank of its program this process is, from the first of these that says so:
//
//   torch.distributed's default process group   told by the tracer
//   the largest communicator of NCCL            per device: ranks may be threads of one process
//   RANK and WORLD_SIZE                         of the environment, when the card is first used
#pragma once

#include <cstdint>

#include "core/api.h"

extern "C" {
// The default process group of torch.distributed: from now on all devices of the process are this
// rank's.
PEAKBENCH_EMULATOR_API void peakbench_emulator_is_rank(int rank, int ranks);
}

namespace peakbench::emulator {

struct Ledger;

// A number of the environment's; `otherwise` where there is none.
std::int32_t from_environment(const char* variable, std::int32_t otherwise);
// Into a ledger that begins.
void enter_rank(Ledger& ledger);
// A device takes part in a communicator.
PEAKBENCH_EMULATOR_API void enter_communicator_rank(int device, int rank, int ranks);

}  // namespace peakbench::emulator
