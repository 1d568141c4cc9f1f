// Errors when the machine has no memory left. Also part of libraries compiled for a user's PyTorch,
// so it uses only the standard library and the system.
#pragma once

#include <cstdint>
#include <string>

namespace peakbench {

// "the machine gave no memory for 12 bytes", with the limit on the address space if there is one. 0
// bytes: unknown.
std::string no_memory_text(std::int64_t bytes);

}  // namespace peakbench
