// What the emulated card, in this very process, says of itself.
#pragma once

#include <optional>
#include <string>

#include "result/case.h"

namespace peakbench::device {

bool is_emulated();                                   // this process runs on the stand-ins
std::optional<result::Emulation> emulation_report();  // absent on a real card
// That this machine had no memory or addresses for what the card had room for; empty where it had.
std::string emulation_host_refusal();

}  // namespace peakbench::device
