#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/program.h"

int main(int argc, char** argv) {
  using namespace peakbench;
  // A limit on the size of files is then an error of the write, which says so.
  std::signal(SIGXFSZ, SIG_IGN);
  const auto places = cli::own_places();
  cli::World world{std::cout,
                   std::cerr,
                   cli::screen_of(STDERR_FILENO),
                   cli::table_width(STDOUT_FILENO),
                   places,
                   [&places] { return std::make_unique<launch::ProcessRunner>(places.worker); }};
  return cli::run_program(std::vector<std::string>(argv + 1, argv + argc), world);
}
