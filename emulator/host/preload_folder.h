// A path of a folder that LD_PRELOAD can hold.
#pragma once

#include <filesystem>

namespace peakbench::emulator {

// `folder` itself; or, where its path has what the dynamic loader takes for a separator or a
// variable (a space, a colon, a dollar), a link to it in a private folder that goes when this
// process exits. Throws ConfigError where no such folder can be made.
std::filesystem::path preload_folder(const std::filesystem::path& folder);

}  // namespace peakbench::emulator
