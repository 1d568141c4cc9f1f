// The folder that two builds are timed in: ab.json, and each build's jobs and logs.
#pragma once

#include <string>

namespace peakbench::ab {

inline constexpr const char* kBaseFolder = "base";
inline constexpr const char* kNewFolder = "new";

// Makes it. Throws ConfigError where an ab.json is not ours, where one of the builds' folders holds
// something and there is no ab.json that it could belong to, and where another run is at work.
void make_folder(const std::string& folder);

}  // namespace peakbench::ab
