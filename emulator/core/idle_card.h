// What the management of a card (NVML, nvidia-smi) says of one on which nothing runs. No kernel
// runs on an emulated card, so it neither warms nor draws power; programs log these figures, and
// none of memory depends on them. They are made up and the same for all cards.
#pragma once

namespace peakbench::emulator {

inline constexpr unsigned kIdleCelsius = 35;
inline constexpr unsigned kHottestCelsius = 90;  // where a card slows down
inline constexpr unsigned kIdleMilliwatts = 50'000;
inline constexpr unsigned kMostMilliwatts = 300'000;
inline constexpr unsigned kIdlePercent = 0;  // of its time in which a kernel runs
// The branch that came with CUDA 13.0; there is no driver here.
inline constexpr const char* kDriverVersion = "580.00";

}  // namespace peakbench::emulator
