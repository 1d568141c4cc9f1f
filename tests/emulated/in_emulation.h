// For tests that need the stand-ins under them from the start: the test program starts itself again
// on an emulated card.
#pragma once

#include <string>

namespace peakbench::emulator {

// In a process that is not emulated yet: never returns. In the emulated one: does nothing.
// `shared`: the folder of what its processes share, if any.
void start_again_on(const std::string& card, char** arguments, const std::string& shared = "");

}  // namespace peakbench::emulator
