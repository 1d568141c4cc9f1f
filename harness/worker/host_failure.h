// What the machine did to this worker, told apart from what the case or a plugin did.
#pragma once

#include <exception>
#include <string>

namespace peakbench::worker {

// Why the machine is to blame, and what to do; empty where it is not. The machine's are: HostError,
// memory that it did not give, and the system's errors that say something of it (a full disk, no
// more threads).
std::string host_failure(const std::exception& error);

// Tells whoever started this worker, and ends it: needs neither disk nor much memory.
[[noreturn]] void end_as_host_failure(const std::string& reason);

// From now on a file size limit is an error of the write, and what ends a thread of a library by an
// exception of the machine's ends the worker as above.
void prepare_for_host_failures();

}  // namespace peakbench::worker
