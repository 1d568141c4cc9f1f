// What the emulated card, in this very process, says of itself.
#pragma once

#include <optional>

#include "result/case.h"

namespace peakbench::device {

bool is_emulated();                                   // this process runs on the stand-ins
std::optional<result::Emulation> emulation_report();  // absent on a real card

}  // namespace peakbench::device
