// Variables of device code (__device__, __constant__) that programs register before main.
#pragma once

#include <cstddef>

namespace peakbench::emulator::runtime {

// Address of a registered variable, allocated at the first question; null for an unknown one.
void* symbol_address(const void* host_variable);
// Whether an address lies in one that was asked for.
bool is_symbol(const void* address);
std::size_t symbol_bytes(const void* host_variable);

}  // namespace peakbench::emulator::runtime
