#pragma once

#include <stdexcept>
#include <string>

namespace peakbench {

// Exceptions by who must act. What can happen to a case is a value (records::Status), not an
// exception.

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

// What the machine refused, in words: why, and what to do.

// True for error numbers caused by the machine, not by the caller: no space, a quota, a limit
// (files, processes, memory, descriptors), an I/O error, a read-only file system.
bool is_host_error(int error);

// "No space left on device; free some space, or choose another folder"; what to do only where that
// is known.
std::string host_error_text(int error);

// The part from the semicolon on.
std::string host_advice(int error);

// True for what the dynamic loader says where the machine, and not the library, is to blame.
bool is_of_host(const std::string& loader_error);

}  // namespace peakbench
