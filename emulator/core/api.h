// Symbols of the core's library that the stub libraries see.
#pragma once

#define PEAKBENCH_EMULATOR_API __attribute__((visibility("default")))
