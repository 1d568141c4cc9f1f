// What the emulated card, in this very process, says of itself.
#pragma once

#include <optional>
#include <string>

#include "recording/device.h"
#include "records/case.h"

namespace peakbench::recording {

// Asked of the process, not of the device's name: `peakbench emulate` runs any program on the
// stand-ins, and that takes them for cuda:0.
bool runs_on_stand_ins();

// Tells the stand-ins, if the process runs on them, when PyTorch's allocator hands memory out: what
// had been copied there belonged to another tensor; and how much is allocated, when they ask. Once;
// the CUDA context must exist.
void tell_emulation_of_allocations();
// From now on the stand-ins of the vendor's libraries, if the process runs on them, say which
// workspaces they are given.
void listen_to_emulated_libraries(const Device::VisitWorkspace& visit);
std::optional<records::Emulation> emulation_report();  // absent on a real card
// That this machine had no memory or addresses for what the card had room for; empty where it had.
std::string emulation_host_refusal();

}  // namespace peakbench::recording
