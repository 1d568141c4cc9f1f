#pragma once

namespace peakbench::planning {

inline constexpr int kSdkRevision = 6;

// What this was configured with.
extern const char* const kLibTorchVersion;
extern const char* const kLibTorchGitVersion;
extern const char* const kLibTorchCuda;
extern const char* const kCxxAbi;

}  // namespace peakbench::planning
