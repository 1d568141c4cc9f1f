#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/ledger.h"
#include "core/shared_cards.h"

namespace peakbench::emulator {

// Memory of each card by process: the processes of a program, by the devices that they used.

// A device of a process that took memory of it, was refused some, or started work.
struct CardUse {
  const Ledger* process;
  unsigned device;

  const LedgerDevice& figures() const { return process->devices[device]; }
};

// Sorted by rank, then by process and device. Processes without a rank are sorted by the latter.
std::vector<CardUse> card_uses(const std::vector<const Ledger*>& ledgers);

// "rank 3"; or "process 4711" where no rank is known or several have it (attempts of elastic
// training).
std::string name_of(const CardUse& use, const std::vector<CardUse>& uses);

struct CardPeak {
  std::size_t card = 0;
  std::uint64_t bytes = 0;   // by all processes together
  std::uint64_t users = 0;   // processes that held memory of it then
  const CardUse* largest{};  // who took the most; into the list of uses
};

// Peaks of the used cards. `card_peaks`: see read_card_peaks. If it is empty, as for a single
// process, each card's largest user counts.
std::vector<CardPeak> peaks_of_cards(const std::vector<CardUse>& uses,
                                     const std::vector<SharedPeak>& card_peaks,
                                     std::uint64_t context_bytes);

// The allocation that did not fit: the last refused one, and whether the program continued.

struct OutOfMemory {
  bool swallowed = false;          // the program continued, or ended well
  CardUse use{};                   // who asked
  std::uint64_t calls = 0;         // how often it ran out of memory
  std::uint64_t asked_bytes = 0;   // of the card, the last time; 0: the program's own limit was
                                   // reached (set_per_process_memory_fraction)
  std::uint64_t in_use_bytes = 0;  // by all processes, then
  std::uint64_t needed_bytes = 0;  // in all, by PyTorch's count; 0: unknown
  std::string function, place;     // that asked; empty if unknown
};

// The host refused memory to a process (ulimit -v), and the card never did. If it ran out of
// memory, that was the host's.
bool is_refused_by_host(const CardUse& use);

// Nullopt if no process ran out of memory. Not counted: an allocation that succeeded after PyTorch
// had emptied its cache, and what only the host refused. `wait_status`: of the program.
std::optional<OutOfMemory> find_out_of_memory(const std::vector<CardUse>& uses, int wait_status);

// "asked for 30.000 GiB (aten::empty at train.py:12) with 60.000 GiB in use"
std::string request_text(const OutOfMemory& failure);

nlohmann::json to_json(const OutOfMemory& failure);

}  // namespace peakbench::emulator
