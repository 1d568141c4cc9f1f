#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/card.h"
#include "core/ledger.h"
#include "records/verdict.h"

namespace peakbench::emulator {

// Reads of unknown values, as a verdict names them.

// By when they were entered first.
std::vector<const LedgerReadBack*> unknown_reads(const Ledger& ledger);

// "aten::item at train.py:12 read bool values that are not known (2 times)"
std::string text_of(const LedgerReadBack& row);

// What of a program's figures depends on how fast a card is.

// Conditions: where the program asked whether work is done, how long it took, and for a profile.
std::vector<std::string> timing_conditions(const Ledger& ledger);

// Blocks of the card that wait for a stream, a condition: empty where there were none.
std::string blocks_in_question(const Ledger& ledger, Streams streams);
// The same of page-locked host memory: a note, no figure of the card depends on it.
std::string pinned_in_question(const Ledger& ledger, Streams streams);

// Sentences about programs whose path depends on the card's free memory: reads of it, and refusals
// after which the program continued. The CUDA context takes a part of it that is in no figure.

// Of a place where the program asked how much is free. `context_bytes`: how much of the card is set
// aside for the CUDA context.
std::string free_memory_text(const LedgerPlace& row, std::uint64_t context_bytes);

// A sentence for each device on which allocations were refused in a program that ended well all the
// same.
std::vector<std::string> survived_refusals(const Ledger& ledger);

// Workspaces whose size a vendor's library chooses, and which are counted as 0: how large one would
// have to be to change the peak.

struct MissingWorkspace {
  Workspace kind{};
  std::string what;         // "cudnn engine workspace"
  std::uint64_t calls = 0;  // that would have had one
  std::string operation;    // PyTorch's operator of the call that is nearest to the peak
  // The largest workspace that leaves the peak unchanged. Absent if the allocated bytes at its
  // calls are unknown.
  std::optional<std::uint64_t> room_bytes;
};

// One for each name, of all devices together. `peak_allocated_bytes`: of the first device, where it
// is not the ledger's.
std::vector<MissingWorkspace> missing_workspaces(
    const Ledger& ledger, const std::optional<std::uint64_t>& peak_allocated_bytes);

std::string text_of(const MissingWorkspace& workspace);

// Workspaces of convolutions, whose size is measured or estimated.

struct ConvolutionWorkspaces {
  std::uint64_t calls = 0;
  bool all_measured = true;
  std::string operation;         // PyTorch's operator of the call that is nearest to the peak
  records::EstimateError error;  // of the peak of allocated bytes
  // Whether the peak may be lower or higher by more than moved blocks.
  bool lowers = false, raises = false;
};

// Of all devices together: the largest error. Empty without any.
std::optional<ConvolutionWorkspaces> convolution_workspaces(
    const Ledger& ledger, const std::optional<std::uint64_t>& peak_allocated_bytes);

std::string text_of(const ConvolutionWorkspaces& workspaces);

}  // namespace peakbench::emulator
