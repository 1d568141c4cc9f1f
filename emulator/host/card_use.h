// Who took what of which card: the processes of a program by the devices that they used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/ledger.h"
#include "core/shared_cards.h"

namespace peakbench::emulator {

// A device of a process that took memory of it, was refused some, or started work.
struct CardUse {
  const Ledger* process;
  unsigned device;

  const LedgerDevice& figures() const { return process->devices[device]; }
};

// By rank, and of one rank, or where nobody said, by process and device.
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

// Of each card that was used. `card_peaks`: see read_card_peaks; where it is empty, as of one
// process alone, each card's largest user counts.
std::vector<CardPeak> peaks_of_cards(const std::vector<CardUse>& uses,
                                     const std::vector<SharedPeak>& card_peaks,
                                     std::uint64_t context_bytes);

}  // namespace peakbench::emulator
