// peakbench-read-many READER: reads file after file from its standard input, each as four bytes of
// length (little-endian) and the bytes, and answers each with a line: "taken", "refused", or
// "leaked WHAT" for an exception that is not documented. A file that takes more than five seconds
// of the processor ends the process (SIGPROF), as one that crashes does; who asks counts.
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "readers/readers.h"

namespace {

using namespace peakbench;

constexpr int kMostSeconds = 5;

bool read_frame(std::string& bytes) {
  std::uint32_t size = 0;
  if (std::fread(&size, sizeof size, 1, stdin) != 1) return false;
  bytes.resize(size);
  return std::fread(bytes.data(), 1, size, stdin) == size;
}

void allow_time() {
  const itimerval limit{{0, 0}, {kMostSeconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

std::string answer(const hostile::Reader& reader, const std::string& path) {
  try {
    return hostile::is_taken(reader, path) ? "taken" : "refused";
  } catch (const std::exception& error) {
    std::string what = error.what();
    for (char& letter : what)
      if (letter < ' ') letter = '?';
    return "leaked " + what.substr(0, 300);
  } catch (...) {
    return "leaked something that is no exception";
  }
}

}  // namespace

int main(int count, char** words) {
  const auto* reader = count == 2 ? hostile::find_reader(words[1]) : nullptr;
  if (reader == nullptr) {
    std::fprintf(stderr, "usage: peakbench-read-many READER, one of:");
    for (const auto& one : hostile::readers()) std::fprintf(stderr, " %s", one.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  const hostile::Scratch scratch;
  std::printf("%s\n", scratch.path().c_str());
  std::fflush(stdout);
  for (std::string bytes; read_frame(bytes);) {
    scratch.write(bytes.data(), bytes.size());
    allow_time();
    std::printf("%s\n", answer(*reader, scratch.path()).c_str());
    std::fflush(stdout);
  }
}
