// What a program's file says of how it uses CUDA, before it is started.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace peakbench::emulator {

// The file that a command's first word starts: itself when it holds a slash, else the first of that
// name on PATH.
std::optional<std::filesystem::path> find_program(const std::string& word);

// Why no library can be put under the program, in a sentence; nullopt when it can, or when the file
// is no ELF program (a script is run by another one).
std::optional<std::string> why_not_emulated(const std::filesystem::path& program);

}  // namespace peakbench::emulator
