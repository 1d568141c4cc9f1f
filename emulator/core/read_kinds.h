// What the host read of the device, in the words that ledgers and results use.
#pragma once

namespace peakbench::emulator {

inline constexpr const char* kReadSize = "size";  // the number of rows of an operator's result
inline constexpr const char* kReadBool = "bool";
inline constexpr const char* kReadInteger = "integer";
inline constexpr const char* kReadFloating = "floating";

}  // namespace peakbench::emulator
