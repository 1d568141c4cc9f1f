#include "host/second_guess.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "errors/errors.h"
#include "host/answer.h"
#include "host/card_use.h"
#include "host/ledger_folder.h"
#include "host/process_report.h"
#include "host/program_signals.h"
#include "host/run_unattended.h"
#include "verdict/judge.h"

namespace peakbench::emulator {
namespace {

// What CUDA gave, and what PyTorch allocated and reserved: of each device of each process.
using Peaks = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>;

struct Outcome {
  std::int64_t peak_bytes = 0;  // of the fullest card
  Peaks peaks;
};

Outcome outcome_of(const std::vector<const Ledger*>& ledgers,
                   const std::vector<SharedPeak>& card_peaks, std::uint64_t context_bytes) {
  Outcome outcome;
  const auto uses = card_uses(ledgers);
  for (const CardUse& use : uses) {
    const LedgerDevice& figures = use.figures();
    outcome.peaks.emplace_back(figures.peak_used_bytes, figures.peak_allocated_bytes,
                               figures.peak_reserved_bytes);
  }
  std::ranges::sort(outcome.peaks);
  for (const CardPeak& peak : peaks_of_cards(uses, card_peaks, context_bytes))
    outcome.peak_bytes = std::max(outcome.peak_bytes, static_cast<std::int64_t>(peak.bytes));
  return outcome;
}

bool is_answered_alike(const LedgerReadBack& row) {
  return row.zero_calls + row.uncertain_calls > 0 && row.kind != ReadKind::finite &&
         effect_of(row.kind) != Effect::none;
}

// What no guess changes, or nothing: then the same peaks say nothing of it.
std::string answered_alike(const std::vector<const Ledger*>& ledgers) {
  std::string found;
  for (const Ledger* ledger : ledgers) {
    if (ledger->unbounded_integers > 0) found = "an integer that it reads has no bound";
    for_each_read(*ledger, [&](const LedgerReadBack& row) {
      if (is_answered_alike(row))
        found = fmt::format("what {} read is larger than what other values are made up for",
                            row.place[0] ? row.place : row.operation);
    });
  }
  return found;
}

// What so many runs do not try.
std::string not_tried(std::int64_t runs, std::int64_t needed) {
  if (runs >= needed) return "";
  const char* what = needed == 2   ? "both sides of each comparison"
                     : needed == 3 ? "both orders of the numbers that it reads"
                                   : "both orders of the sizes that it reads";
  return fmt::format("{} further run{} not try {}, as --second-guess {} does", runs,
                     runs == 1 ? " does" : "s do", what, needed);
}

class Guesses {
 public:
  explicit Guesses(const SecondGuessRequest& request)
      : request_(request), context_bytes_(request.first.card.facts.context_bytes) {}

  SecondGuess go() {
    add(outcome_of(request_.first.ledgers, request_.first.card_peaks, context_bytes_));
    alike_ = answered_alike(request_.first.ledgers);
    needed_ = guesses_needed(request_.first.ledgers);
    for (int run = 1; run <= request_.runs && guess_.problem.empty(); ++run) again(run);
    if (guess_.problem.empty() && all_alike_) guess_.problem = alike_;
    if (guess_.problem.empty() && all_alike_) guess_.problem = not_tried(request_.runs, needed_);
    guess_.same = guess_.problem.empty() && guess_.runs > 1 && all_alike_;
    return std::move(guess_);
  }

 private:
  void again(int run) {
    if (!request_.quiet)
      std::fprintf(stderr, "peakbench: running it again with other values (%d of %lld)\n", run,
                   static_cast<long long>(request_.runs));
    const ProgramSignals signals;
    const LedgerFolder folder;
    const auto cancelled = [&] { return signals.noted() != 0; };
    EmulatedCommand command = request_.command;
    command.values.guess = run;
    command.more_environment = nullptr;  // nothing of it is recorded
    try {
      const auto prepared = prepare(command, folder.path(), true, cancelled);
      const auto end = prepared ? std::optional(run_unattended(command.command, *prepared,
                                                               folder.path() / "printed.log",
                                                               request_.limit, cancelled))
                                : std::nullopt;
      guess_.problem = problem_of(end);
    } catch (const ConfigError& error) {
      guess_.problem = error.what();
    }
    if (!guess_.problem.empty()) return;
    const auto owned = read_ledgers(folder.path());
    std::vector<const Ledger*> ledgers;
    for (const auto& ledger : owned) ledgers.push_back(ledger.get());
    if (alike_.empty()) alike_ = answered_alike(ledgers);
    needed_ = std::max(needed_, guesses_needed(ledgers));
    add(outcome_of(ledgers, read_card_peaks(folder.path()), context_bytes_));
  }

  std::string problem_of(const std::optional<process::ProcessEnd>& end) const {
    if (!end || end->stopped == process::Stop::kInterrupt) return "it was interrupted";
    if (!end->start_error.empty()) return end->start_error;
    if (end->stopped == process::Stop::kTimeout)
      return fmt::format("it was ended after {} s", request_.limit.count());
    if (end->signal != 0) return fmt::format("it ended with signal {}", end->signal);
    if (end->exit_code != 0) return fmt::format("it ended with exit code {}", end->exit_code);
    return "";
  }

  void add(const Outcome& outcome) {
    ++guess_.runs;
    guess_.peak_bytes.push_back(outcome.peak_bytes);
    if (guess_.runs == 1) first_ = outcome.peaks;
    all_alike_ &= outcome.peaks == first_;
  }

  const SecondGuessRequest& request_;
  std::uint64_t context_bytes_;
  SecondGuess guess_;
  Peaks first_;
  bool all_alike_ = true;
  std::string alike_ = {};
  std::int64_t needed_ = 2;  // further runs
};

}  // namespace

SecondGuess second_guess(const SecondGuessRequest& request) { return Guesses(request).go(); }

}  // namespace peakbench::emulator
