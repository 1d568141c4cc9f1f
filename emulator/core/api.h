// What the stand-ins see of the core's library.
#pragma once

#define PEAKBENCH_EMULATOR_API __attribute__((visibility("default")))
