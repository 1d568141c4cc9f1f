#include "in_emulation.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "emulator/host/environment.h"

namespace peakbench::emulator {

void start_again_on(const std::string& card, char** arguments, const std::string& shared) {
  if (std::getenv(kCardVariable)) return;
  const Installation installation = find_installation();
  for (const auto& [name, value] :
       emulation_environment(parse_card(card, installation), installation, shared)) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  execv("/proc/self/exe", arguments);
  std::perror("execv");
  std::exit(1);
}

}  // namespace peakbench::emulator
