// Errors when the machine has no memory left. Also part of libraries compiled for a user's PyTorch,
// so it uses only the standard library and the system.
#pragma once

#include <cstdint>
#include <string>

namespace peakbench {

// "the machine gave no memory for 12 bytes"; and the limit on the address space, where there is
// one. 0 bytes: how many is not known.
std::string no_memory_text(std::int64_t bytes);

}  // namespace peakbench
