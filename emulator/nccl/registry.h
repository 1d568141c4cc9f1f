// All communicators of the process, and who waits for which.
#pragma once

#include <string>

#include "nccl/communicator.h"

namespace peakbench::emulator::nccl {

// Gives it a number, by which streams know it.
std::uint64_t enter_communicator(const CommunicatorPtr& communicator);

// By NCCL's handle; null for none of these.
CommunicatorPtr find_communicator(void* handle);
void* handle_of(const CommunicatorPtr& communicator);
bool drop_communicator(void* handle);

// The last error of any communicator, in words.
const char* last_error();
void set_last_error(const std::string& text);

}  // namespace peakbench::emulator::nccl
