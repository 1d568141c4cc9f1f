// What the machine refused, in words: why, and what to do.
#pragma once

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

}  // namespace peakbench
