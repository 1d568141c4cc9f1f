// What a program's file says of how it uses CUDA, before it is started.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace peakbench::pytorch {

// Why no library can be put under the program, in a sentence; nullopt when it can, or when the file
// is no ELF program (a script is run by another one).
std::optional<std::string> why_not_preloaded(const std::filesystem::path& program);

}  // namespace peakbench::pytorch
