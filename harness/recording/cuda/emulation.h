// What the emulated card, in this very process, says of itself.
#pragma once

#include <optional>
#include <string>

#include "recording/device.h"
#include "records/case.h"

namespace peakbench::recording {

// Checks the process, not the device's name: `peakbench emulate` runs any program on the stub
// libraries, and the program sees them as cuda:0.
bool runs_on_stand_ins();

// Reports allocations of PyTorch's allocator to the stub libraries, if the process uses them: bytes
// copied there earlier belonged to another tensor. Also tells them how much is allocated, on
// request. Call once; the CUDA context must exist.
void tell_emulation_of_allocations();
// From now on the stub libraries, if the process uses them, report the workspaces that they
// receive.
void listen_to_emulated_libraries(const Device::VisitWorkspace& visit);
std::optional<records::Emulation> emulation_report();  // absent on a real card
// The message that this machine had no memory or addresses although the card had enough; else
// empty.
std::string emulation_host_refusal();

}  // namespace peakbench::recording
