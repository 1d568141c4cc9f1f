// Asks a program of the system's: what it prints, bounded, within a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace peakbench::process {

struct CommandSaid {
  std::string start_error;  // why it could not be started; nothing else holds then
  bool timed_out = false;
  int exit_code = 0;  // 128 + the signal that ended it
  std::string out, err;
  bool ok() const { return start_error.empty() && !timed_out && exit_code == 0; }
};

// `arguments[0]` is looked for on PATH. `without`: variables whose names begin so are kept from it.
// Its input is empty; a Ctrl-C typed at the terminal does not reach it. More than 64 MiB of output
// ends it.
CommandSaid ask_command(const std::vector<std::string>& arguments,
                        const std::vector<std::string>& without,
                        std::chrono::milliseconds patience);

// Where PATH has such a program; empty: nowhere.
std::string on_path(const std::string& program);

}  // namespace peakbench::process
