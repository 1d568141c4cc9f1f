#include "host/run_unattended.h"

#include <cstdlib>

#include "process/find_program.h"

namespace peakbench::emulator {

process::ProcessEnd run_unattended(const std::vector<std::string>& command,
                                   const PreparedCommand& prepared,
                                   const std::filesystem::path& log, std::chrono::seconds limit,
                                   const std::function<bool()>& cancelled) {
  process::ProcessSpec spec;
  spec.arguments = command;
  spec.arguments[0] = process::find_program(command[0])->string();
  spec.environment = prepared.environment;
  const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");  // as in run_program
  if (devices && *devices)
    std::erase_if(spec.environment,
                  [](const auto& variable) { return variable.first == "CUDA_VISIBLE_DEVICES"; });
  spec.log_path = log.string();
  spec.timeout = limit;
  return process::run_process(
      spec, [](const std::string&) {}, cancelled);
}

}  // namespace peakbench::emulator
