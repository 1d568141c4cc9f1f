// PyTorch's own counts of its memory, for the ledger: torch.cuda.max_memory_allocated and
// max_memory_reserved of the whole process.
#pragma once

#include "recording/cuda/allocator_events.h"

namespace peakbench::values {

// For each event of the allocator, which holds its lock: peaks only fall when the program resets
// them, and what they were then has been seen by an event before.
void count(const recording::AllocatorEvent& event);
// From now on the stand-ins know how much is allocated, and how PyTorch chooses convolutions.
void answer_questions();
// Once, when the allocator is there: answers questions, and counts what comes after the last event,
// at the process's end.
void start_counting();

}  // namespace peakbench::values
