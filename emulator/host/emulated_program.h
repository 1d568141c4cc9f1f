// A program that ran on an emulated card, when it has ended: what its text and its JSON are made
// of.
#pragma once

#include <optional>
#include <vector>

#include "core/ledger.h"
#include "core/shared_cards.h"
#include "host/card.h"
#include "pytorch/torch_in_use.h"
#include "verdict/judge.h"

namespace peakbench::emulator {

struct EmulatedProgram {
  Card card;
  std::vector<const Ledger*> ledgers;  // of all its processes that asked for a card
  std::vector<SharedPeak> card_peaks;  // by card: read_card_peaks
  std::vector<int> cuda_majors;        // that the card stands in for
  std::optional<pytorch::TorchInUse> torch;
  Verdict verdict;
  int wait_status = 0;  // as waitpid gives it
  int interrupted = 0;  // the first signal that came for it through us; 0: none
};

}  // namespace peakbench::emulator
