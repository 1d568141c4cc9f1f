// Counts every byte of the CPU allocator, as asked for: an accounting of its own, so that the
// models are not checked with the harness they are measured by.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace peakbench::test {

class ByteCounter {
 public:
  // Takes the CPU allocator's place for the rest of the process.
  static ByteCounter& install();

  // The peak is counted anew from here; what is alive stays alive.
  void begin_phase(const std::string& name);
  std::int64_t alive_bytes() const;
  std::int64_t peak_bytes() const;  // of the phase

  // One line a change, `phase signed_bytes alive_bytes thread`, thread `own` for the one that
  // installed the counter and `other`; for comparing two sequences.
  void write_changes(const std::string& path) const;

 private:
  ByteCounter() = default;
};

}  // namespace peakbench::test
