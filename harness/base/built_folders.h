#pragma once

namespace peakbench::files {

// Absolute, as CMake knew them when this was compiled: there where it was built, and mostly not
// elsewhere.
extern const char* const kSourceFolder;
extern const char* const kBuiltEmulatorFolder;

}  // namespace peakbench::files
