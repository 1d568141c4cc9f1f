// A part of a stack that did nothing: its case must not pass for one that used it.
#pragma once

#include <stdexcept>

namespace peakbench::worker {

// The case's outcome is `no_effect`; the message names the part.
struct NoEffect : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace peakbench::worker
