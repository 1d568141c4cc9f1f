#include <unistd.h>

#include <iostream>

#include "cli/program.h"
#include "cli/terminal.h"

int main(int argc, char** argv) {
  using namespace peakbench;
  cli::keep_standard_descriptors();
  cli::ignore_signals_of_writes();
  const auto places = cli::own_places();
  cli::StandardOutput output(STDOUT_FILENO);
  cli::World world{output.stream(),
                   std::cerr,
                   cli::screen_of(STDERR_FILENO),
                   cli::table_width(STDOUT_FILENO),
                   places,
                   [&places](const planning::Plan& plan) {
                     return std::make_unique<launch::ProcessRunner>(plan, places.program);
                   }};
  world.line_width = cli::line_width(STDOUT_FILENO);
  const int code = cli::run_program(std::vector<std::string>(argv + 1, argv + argc), world);
  return output.finish(code, std::cerr);
}
