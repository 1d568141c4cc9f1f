// A card's JSON file: {"id", "title", "values": {NAME: {"value": ..., "source": "..."}}}. If
// measurements were published, also "context_memory" (context_memory.h).
#pragma once

#include <filesystem>

#include "emulator/host/card.h"

namespace peakbench::emulator {

// Throws ConfigError with the file and the key. `binary_arch` and `count` are left alone: they are
// not the card's.
Card read_card_file(const std::filesystem::path& path);

}  // namespace peakbench::emulator
