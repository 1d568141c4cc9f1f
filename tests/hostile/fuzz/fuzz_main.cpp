// One fuzz target: libFuzzer's bytes as a file for the reader that PEAKBENCH_READER names. An
// exception that is not documented ends it, and is a finding.
#include <cstddef>
#include <cstdint>

#include "readers/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  using namespace peakbench::hostile;
  static const Scratch scratch;
  static const Reader reader{PEAKBENCH_READER_NAME, PEAKBENCH_READER};
  scratch.write(reinterpret_cast<const char*>(bytes), size);
  is_taken(reader, scratch.path());
  return 0;
}
