// `peakbench emulate` without the rest of the program, for the tests of this folder:
//   emulate [--card CARD] [--json FILE] -- PROGRAM ARGUMENT...
#include <cstdio>
#include <cstring>
#include <exception>

#include "emulator/host/run_emulated.h"

int main(int count, char** words) {
  peakbench::emulator::EmulateRequest request;
  int at = 1;
  for (; at + 1 < count && std::strcmp(words[at], "--") != 0; at += 2) {
    (std::strcmp(words[at], "--card") == 0 ? request.card : request.json_path) = words[at + 1];
  }
  request.command.assign(words + (at < count ? at + 1 : at), words + count);
  try {
    return peakbench::emulator::run_emulated(request);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 2;
  }
}
