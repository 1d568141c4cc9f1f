// A prepared program without input, whose output goes to a file.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "host/emulated_command.h"
#include "process/process.h"

namespace peakbench::emulator {

// Waits for its end; after `limit`, or when `cancelled`, it is ended.
process::ProcessEnd run_unattended(const std::vector<std::string>& command,
                                   const PreparedCommand& prepared,
                                   const std::filesystem::path& log, std::chrono::seconds limit,
                                   const std::function<bool()>& cancelled);

}  // namespace peakbench::emulator
