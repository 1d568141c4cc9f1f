// What is said of a trace that does not add up.
#pragma once

#include <string>

#include "base/errors.h"
#include "trace/lifetimes.h"

namespace peakbench::trace {

inline std::string error_of(const Trace& trace) {
  try {
    lifetimes(trace);
  } catch (const TraceError& error) {
    return error.what();
  }
  return "(no error)";
}

}  // namespace peakbench::trace
