// The emulated program itself, with our own input and outputs.
#pragma once

#include <string>
#include <vector>

#include "host/program_signals.h"
#include "process/environment.h"

namespace peakbench::emulator {

// Where its standard output goes.
enum class ProgramOutput { kOwn, kToStandardError };

// Waits for its end; its status, as waitpid gives it. Which of several devices to use
// (CUDA_VISIBLE_DEVICES) is the caller's to say: a value of ours wins there. Throws ConfigError
// where it was not started, with the reason.
int run_program(const std::vector<std::string>& command, const process::Environment& environment,
                const ProgramSignals& signals, ProgramOutput output = ProgramOutput::kOwn);

}  // namespace peakbench::emulator
