// Exceptions by who must act. What can happen to a case is a value (result::Status), not an
// exception.
#pragma once

#include <stdexcept>
#include <string>

namespace peakbench {

// The user's input: what was wrong, where, what was expected, what to do.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A plugin's author must act: wrong stamp, broken manifest, missing entry, an option the manifest
// does not declare.
struct PluginError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Peakbench's authors must act: a trace whose sums do not add up.
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A result file that is missing, cut short, or newer than this program. Holds the path and the
// field.
struct RunFileError : ConfigError {
  using ConfigError::ConfigError;
};

// The machine failed what was tried: a full disk, a limit, no memory, no process. Says what, where,
// and what to do. In a worker it becomes the outcome host_failure.
struct HostError : ConfigError {
  using ConfigError::ConfigError;
};

}  // namespace peakbench
