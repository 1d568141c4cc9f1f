#pragma once

#include <cstdint>

#include "nccl/communicator.h"

namespace peakbench::emulator::nccl {

// What NCCL's calls move between ranks.

struct Collective {
  Call call;
  const void* from;
  void* to;
  std::uint64_t bytes;  // of a rank's part; for all_reduce, broadcast and reduce of all data
  int type;
  int reduction = 0;
  int root = -1;
};

// ncclResult_t, all of them.
int run(const CommunicatorPtr& communicator, const Collective& what, std::uint64_t stream);
int send(const CommunicatorPtr& communicator, const void* from, std::uint64_t bytes, int type,
         int peer, std::uint64_t stream);
int receive(const CommunicatorPtr& communicator, void* to, std::uint64_t bytes, int type, int peer,
            std::uint64_t stream);
// Waits for all ranks of the parent. Null of a rank without a colour.
int split(const CommunicatorPtr& parent, int color, int key, CommunicatorPtr& out);

// Calls of a group end together, with the outermost one.
void begin_group();
int end_group();

}  // namespace peakbench::emulator::nccl
