// The summary line: whether the program fits the card, in one sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "emulator/host/card_use.h"
#include "emulator/host/context_memory.h"
#include "emulator/host/emulated_program.h"

namespace peakbench::emulator {

enum class Tone { good, bad, doubtful };

struct Answer {
  // Nullopt if the run does not show it, for one of these reasons:
  //
  // - It was refused memory and continued.
  // - It failed for another reason.
  // - It used no card.
  // - Its figures are a lower bound or unreliable.
  // - They leave too little for the CUDA context.
  std::optional<bool> fits;
  Tone tone = Tone::doubtful;
  std::string sentence;
  // Of the fullest card, or the one that ran out of memory; without a card, nothing below is known.
  std::optional<std::size_t> card;
  std::optional<CardUse> largest;  // who took the most of it
  std::uint64_t peak_bytes = 0;    // what CUDA gave to all processes together
  std::uint64_t total_bytes = 0;
  ContextMemoryTaken context;  // of one process, by the rule of context_taken()
  // What nvidia-smi would show of it: where nothing is set aside, there is one all the same.
  ContextMemoryTaken shown_context;
  bool context_included = false;  // in `peak_bytes`: it was set aside
  std::size_t processes = 1;      // that used the card together: each has a context there
  // Ranks of the largest communicator of NCCL on the card, which takes memory and says not how
  // much; 0 without one.
  std::size_t communicator_ranks = 0;
  std::optional<OutOfMemory> out_of_memory;
};

// Pure: from the records alone.
Answer answer_of(const EmulatedProgram& program);

// "exit code 1", "signal 9 (Killed)".
std::string ending_text(int wait_status);

nlohmann::json to_json(const Answer& answer);

}  // namespace peakbench::emulator
