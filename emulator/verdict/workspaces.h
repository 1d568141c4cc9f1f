// Workspaces whose size a vendor's library chooses, and which are counted as none: how large one
// would have to be for the peak to be another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ledger.h"

namespace peakbench::emulator {

struct MissingWorkspace {
  Workspace kind{};
  std::string what;         // "cudnn engine workspace"
  std::uint64_t calls = 0;  // that would have had one
  std::string operation;    // PyTorch's operator of the call that is nearest to the peak
  // By how much one may exceed nothing without a change of the peak; absent where nobody counted
  // what was allocated meanwhile.
  std::optional<std::uint64_t> room_bytes;
};

// One for each name, of all devices together. `peak_allocated_bytes`: of the first device, where it
// is not the ledger's.
std::vector<MissingWorkspace> missing_workspaces(
    const Ledger& ledger, const std::optional<std::uint64_t>& peak_allocated_bytes);

std::string text_of(const MissingWorkspace& workspace);

}  // namespace peakbench::emulator
