// What the machine refused, in words: why, and what to do.
#pragma once

#include <cstdint>
#include <string>

namespace peakbench {

// True for the error numbers that say something of the machine and nothing of who asked: no space,
// a quota, a limit on files, processes, memory or descriptors, an I/O error, a read-only file
// system.
bool is_host_error(int error);

// "No space left on device; free some space, or choose another folder"; what to do only where that
// is known.
std::string host_error_text(int error);

// The part from the semicolon on.
std::string host_advice(int error);

// True for what the dynamic loader says where the machine, and not the library, is to blame.
bool is_of_host(const std::string& loader_error);

// The limit on this process's address space (ulimit -v); 0: none.
std::int64_t address_space_limit();

// "the machine gave no memory for 12 bytes"; and the limit on the address space, where there is
// one. 0 bytes: how many is not known.
std::string no_memory_text(std::int64_t bytes);

}  // namespace peakbench
