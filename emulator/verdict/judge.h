// How far the memory figures of emulated processes can be relied on, from their ledgers: those of a
// program (`emulate`) and of a case (`run`).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/card.h"
#include "core/ledger.h"
#include "records/verdict.h"

namespace peakbench::emulator {

using records::EstimateError;
using records::SecondGuess;
using records::Verdict;
using records::verdict_word;
using records::VerdictKind;

struct VerdictRequest {
  int wait_status = 0;  // how the program ended, as waitpid gives it; of a case, 0: well
  std::string assume;   // --assume: "", "nonzero=all" or "nonzero=none"
  Streams streams = Streams::at_once;
  std::uint64_t context_bytes = 0;  // set aside for the CUDA context
  // Cards that several processes had memory of at a time, and how many did.
  struct SharedCard {
    std::size_t card, processes;
  };
  std::vector<SharedCard> shared_cards = {};
  // A case of `run`, whose worker asks of itself at the end of its steps.
  bool of_case = false;
  // Of the first device; absent: by the ledgers, from the process's start on.
  std::optional<std::uint64_t> peak_allocated_bytes = std::nullopt;
  // What further runs with other plausible values showed.
  std::optional<SecondGuess> second_guess = std::nullopt;
};

// Whether another plausible value could make another verdict: the program read unknown ones.
bool rests_on_unknown_values(const std::vector<const Ledger*>& ledgers);

// How many further runs take both sides of what the program can compare on the host
// (values/outcomes.h): 2; of several integers, 3; with a size among them, 4.
std::int64_t guesses_needed(const std::vector<const Ledger*>& ledgers);

// Of all processes of a program. Pure: from the records alone.
Verdict judge(const std::vector<const Ledger*>& ledgers, const VerdictRequest& request);

// Whether the process took memory or started work; a program may only have asked which cards there
// are.
bool used_the_card(const Ledger& ledger);

// Whether torchrun started another attempt after this process's (--max-restarts).
bool is_of_an_earlier_attempt(const Ledger& ledger, const std::vector<const Ledger*>& ledgers);

// "exact if the program's path does not depend on ... (and 2 more). --second-guess 2 ...": the
// first reason or condition, and what to do about it; empty where the figures are exact.
std::string verdict_sentence(const Verdict& verdict);

// All of it, in lines.
std::string verdict_text(const Verdict& verdict);

}  // namespace peakbench::emulator
