// A program that is run for what it prints, within a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace peakbench::emulator {

enum class ErrorOutput { dropped, kept };

struct CommandResult {
  bool ended_well = false;
  bool too_long = false;  // it was ended
  std::string text;       // what it printed
};

CommandResult run_bounded(const std::vector<std::string>& command, std::chrono::seconds longest,
                          ErrorOutput errors);

}  // namespace peakbench::emulator
