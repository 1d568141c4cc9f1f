#include "cli/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "text/wrapped.h"

namespace peakbench::cli {
namespace {

constexpr int kUnknownTerminalWidth = 80;
constexpr int kFileWidth = 100;

int terminal_width(int descriptor) {
  winsize size{};
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kUnknownTerminalWidth;
  return size.ws_col;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Screen screen_of(int descriptor) {
  Screen screen;
  screen.live = isatty(descriptor) == 1 && variable("NO_COLOR").empty() &&
                variable("TERM") != "dumb" && !variable("TERM").empty();
  screen.width = [descriptor] { return terminal_width(descriptor); };
  return screen;
}

int table_width(int descriptor) {
  return isatty(descriptor) == 1 ? terminal_width(descriptor) : kFileWidth;
}

int line_width(int descriptor) {
  return isatty(descriptor) == 1 ? terminal_width(descriptor) : kUnbroken;
}

}  // namespace peakbench::cli
