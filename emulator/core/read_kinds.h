// What the host read of the device, in the words that ledgers and results use.
#pragma once

namespace peakbench::emulator {

inline constexpr const char* kReadSize = "size";  // the number of rows of an operator's result
inline constexpr const char* kReadBool = "bool";
inline constexpr const char* kReadInteger = "integer";
inline constexpr const char* kReadFloating = "floating";
// Whether values are finite (isfinite, isnan, isinf), which those that are not known are taken to
// be.
inline constexpr const char* kReadFinite = "finite";
inline constexpr const char* kReadSeed = "seed";        // a random number from all integers
inline constexpr const char* kReadStorage = "storage";  // a storage as it is: torch.save

// A tensor onto the host, in a process without Python: what operators ask of it there is told by
// itself.
inline constexpr const char* kReadCopy = "copy";

}  // namespace peakbench::emulator
