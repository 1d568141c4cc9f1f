#include "nccl/program.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/card.h"

namespace peakbench::emulator::nccl {
namespace {

bool has_variable(const std::string& environment, const std::string& variable) {
  for (std::size_t at = 0; at < environment.size(); at = environment.find('\0', at) + 1) {
    if (std::strcmp(environment.c_str() + at, variable.c_str()) == 0) return true;
    if (environment.find('\0', at) == std::string::npos) break;
  }
  return false;
}

std::string read_environment(const char* pid) {
  const int file = open((std::string("/proc/") + pid + "/environ").c_str(), O_RDONLY | O_CLOEXEC);
  std::string text;
  char piece[4096];
  for (ssize_t got = 1; file >= 0 && (got = read(file, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(got));
  if (file >= 0) close(file);
  return text;
}

}  // namespace

bool others_in_program() {
  const char* folder = std::getenv(kSharedVariable);
  if (!folder || !*folder) return false;
  const std::string variable = std::string(kSharedVariable) + "=" + folder;
  const std::string own = std::to_string(getpid());
  DIR* processes = opendir("/proc");
  bool found = false;
  while (const dirent* entry = processes && !found ? readdir(processes) : nullptr) {
    const bool number = std::all_of(entry->d_name, entry->d_name + std::strlen(entry->d_name),
                                    [](char c) { return c >= '0' && c <= '9'; });
    found =
        number && own != entry->d_name && has_variable(read_environment(entry->d_name), variable);
  }
  if (processes) closedir(processes);
  return found;
}

}  // namespace peakbench::emulator::nccl
