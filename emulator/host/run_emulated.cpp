#include "emulator/host/run_emulated.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/file.h"
#include "base/json.h"
#include "base/printable.h"
#include "core/ledger_json.h"
#include "emulator/host/answer.h"
#include "emulator/host/card_use.h"
#include "emulator/host/device_memory.h"
#include "emulator/host/emulated_program.h"
#include "emulator/host/ledgers.h"
#include "emulator/host/program_signals.h"
#include "host/process.h"
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

// Runs a program again with other plausible values in place of unknown ones, and compares its
// peaks. It runs without input, and what it prints is not shown. SIGINT, SIGQUIT, SIGTERM and
// SIGHUP end it. Says on stderr what it does.
class Guesses {
 public:
  Guesses(const EmulatedCommand& command, std::int64_t runs, std::chrono::seconds limit, bool quiet)
      : command_(command), runs_(runs), limit_(limit), quiet_(quiet) {}

  // `first`: that ended well.
  SecondGuess after(const EmulatedProgram& first) {
    add(first.ledgers, first.card_peaks, first.card.facts.context_bytes);
    for (int run = 1; run <= runs_ && guess_.problem.empty(); ++run)
      again(run, first.card.facts.context_bytes);
    if (guess_.problem.empty() && all_alike_) guess_.problem = alike_;
    if (guess_.problem.empty() && all_alike_) guess_.problem = not_tried(runs_, needed_);
    guess_.same = guess_.problem.empty() && guess_.runs > 1 && all_alike_;
    return std::move(guess_);
  }

 private:
  void again(int run, std::uint64_t context_bytes) {
    if (!quiet_)
      std::fprintf(stderr, "peakbench: running it again with other values (%d of %lld)\n", run,
                   static_cast<long long>(runs_));
    const ProgramSignals signals;
    const LedgerFolder folder;
    const auto cancelled = [&] { return signals.noted() != 0; };
    EmulatedCommand command = command_;
    command.values.guess = run;
    command.more_environment = nullptr;  // nothing of it is recorded
    try {
      const auto prepared = prepare(command, folder.path(), true, cancelled);
      const auto end =
          prepared ? std::optional(run_unattended(command.command, *prepared,
                                                  folder.path() / "printed.log", limit_, cancelled))
                   : std::nullopt;
      guess_.problem = problem_of(end);
    } catch (const ConfigError& error) {
      guess_.problem = error.what();
    }
    if (!guess_.problem.empty()) return;
    const auto owned = read_ledgers(folder.path());
    std::vector<const Ledger*> ledgers;
    for (const auto& ledger : owned) ledgers.push_back(ledger.get());
    add(ledgers, read_card_peaks(folder.path()), context_bytes);
  }

  std::string problem_of(const std::optional<process::ProcessEnd>& end) const {
    if (!end || end->stopped == process::Stop::kInterrupt) return "it was interrupted";
    if (!end->start_error.empty()) return end->start_error;
    if (end->stopped == process::Stop::kTimeout)
      return fmt::format("it was ended after {} s", limit_.count());
    if (end->signal != 0) return fmt::format("it ended with signal {}", end->signal);
    if (end->exit_code != 0) return fmt::format("it ended with exit code {}", end->exit_code);
    return "";
  }

  void add(const std::vector<const Ledger*>& ledgers, const std::vector<SharedPeak>& card_peaks,
           std::uint64_t context_bytes) {
    if (alike_.empty()) alike_ = answered_alike(ledgers);
    needed_ = std::max(needed_, guesses_needed(ledgers));
    const Outcome outcome = outcome_of(ledgers, card_peaks, context_bytes);
    ++guess_.runs;
    guess_.peak_bytes.push_back(outcome.peak_bytes);
    if (guess_.runs == 1) first_ = outcome.peaks;
    all_alike_ &= outcome.peaks == first_;
  }

  const EmulatedCommand& command_;
  std::int64_t runs_;           // further ones
  std::chrono::seconds limit_;  // of each; then it is ended
  bool quiet_;
  SecondGuess guess_;
  Peaks first_;
  bool all_alike_ = true;
  std::string alike_ = {};
  std::int64_t needed_ = 2;  // further runs
};

namespace fs = std::filesystem;

constexpr int kCannotWrite = 2;

// The ranks that a program started may still be on their way out when it has ended itself.
std::vector<std::unique_ptr<Ledger>> read_ledgers_at_end(const fs::path& folder, bool quiet) {
  using namespace std::chrono_literals;
  const auto began = std::chrono::steady_clock::now();
  for (bool told = false;; std::this_thread::sleep_for(20ms)) {
    auto ledgers = read_ledgers(folder);
    const auto left = std::ranges::find_if(
        ledgers, [](const auto& one) { return !one->finished && start_of(one->pid) != 0; });
    const auto waited = std::chrono::steady_clock::now() - began;
    if (left == ledgers.end() || waited > 5s) return ledgers;
    if (!told && !quiet && waited > 1s) {
      told = true;
      std::fprintf(stderr, "peakbench: waiting for process %d, which the program left running\n",
                   (*left)->pid);
    }
  }
}

nlohmann::json torch_json(const std::optional<pytorch::TorchInUse>& torch) {
  if (!torch) return nullptr;
  return {{"version", torch->version}, {"cuda", torch->cuda}, {"folder", torch->folder.string()}};
}

nlohmann::json device_memory_json(const Answer& answer) {
  const auto memory = device_memory_of(answer);
  return memory ? to_json(*memory) : nullptr;
}

// Those that were used: each card's own peak, over all processes.
nlohmann::json cards_json(const Card& card, const std::vector<SharedPeak>& peaks) {
  nlohmann::json cards = nlohmann::json::array();
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i].bytes)
      cards.push_back({{"index", i},
                       {"total_bytes", card.facts.total_memory_bytes},
                       {"peak_used_bytes", peaks[i].bytes}});
  }
  return cards;
}

VerdictRequest verdict_request(const EmulatedProgram& program, const std::string& assume) {
  const CardFacts& facts = program.card.facts;
  VerdictRequest request;
  request.wait_status = program.wait_status;
  request.assume = assume;
  request.streams = streams_of(facts);
  request.context_bytes = facts.context_bytes;
  const auto uses = card_uses(program.ledgers);
  for (const CardPeak& peak : peaks_of_cards(uses, program.card_peaks, facts.context_bytes))
    if (peak.users > 1) request.shared_cards.push_back({peak.card, peak.users});
  return request;
}

void write_json(const EmulateRequest& request, const EmulatedProgram& program, const Answer& answer,
                const nlohmann::json& more) {
  const Card& card = program.card;
  nlohmann::json processes = nlohmann::json::array();
  for (const Ledger* ledger : program.ledgers) processes.push_back(to_json(*ledger));
  nlohmann::json document = {
      {"emulated", true},
      {"answer", to_json(answer)},
      {"card", card.spec},
      {"card_name", card.facts.name},
      {"card_memory_bytes", card.facts.total_memory_bytes},
      {"context_set_aside_bytes", card.facts.context_bytes},
      {"context_memory", to_json(card.context_memory)},
      {"device_memory", device_memory_json(answer)},
      {"reserved", reserved_json(program, answer)},
      {"name", request.name.empty() ? nlohmann::json() : nlohmann::json(request.name)},
      {"command", request.command},
      {"torch", torch_json(program.torch)},
      {"exit_code", process::exit_code(program.wait_status)},
      {"processes", processes},
      {"cards", cards_json(card, program.card_peaks)},
      {"verdict", to_json(program.verdict)}};
  document.update(more);
  if (request.json_out)
    *request.json_out << json_text(document) << std::flush;
  else
    files::write_json_file(request.json_path, document);
}

// Before an hour of somebody's program, not after it.
void check_writable(const std::string& path) {
  if (path.empty()) return;
  if (const auto what = files::why_no_file(path); what == "a folder")
    throw ConfigError(fmt::format("--json {}: is {}; name a file", path, what));
  if (!files::why_no_file(path).empty()) return;  // a device, a pipe: opened once, to be written
  if (!std::ofstream(path, std::ios::app))
    throw ConfigError(fmt::format("--json {}: cannot be written: {}", path, std::strerror(errno)));
}

// Of another run with other values, which may take another way.
std::chrono::seconds limit_after(std::chrono::steady_clock::duration took) {
  return std::chrono::seconds(60) + 10 * std::chrono::duration_cast<std::chrono::seconds>(took);
}

}  // namespace

int run_emulated(const EmulateRequest& request) {
  check_writable(request.json_path);
  const ProgramSignals signals;
  const LedgerFolder folder;
  const auto prepared = prepare(request, folder.path(), true, [&] { return signals.noted() != 0; });
  if (!prepared) return ended_before_the_program(signals.noted());
  const bool quiet = request.look.view == View::kNothing;
  const auto began = std::chrono::steady_clock::now();
  const int status = run_program(
      request.command, prepared->environment, signals,
      request.json_out ? ProgramOutput::kToStandardError : ProgramOutput::kOwn, prepared->runs);
  signals.restore();
  const auto took = std::chrono::steady_clock::now() - began;
  const auto owned = read_ledgers_at_end(folder.path(), quiet);
  EmulatedProgram program{prepared->card,
                          {},
                          read_card_peaks(folder.path()),
                          prepared->installation.cuda_majors,
                          prepared->torch,
                          {},
                          status,
                          signals.came_for_program()};
  for (const auto& ledger : owned) program.ledgers.push_back(ledger.get());
  auto asked = verdict_request(program, request.values.assume);
  if (request.second_guesses > 0 && status == 0 && rests_on_unknown_values(program.ledgers))
    asked.second_guess =
        Guesses(request, request.second_guesses, limit_after(took), quiet).after(program);
  program.verdict = judge(program.ledgers, asked);
  const Answer answer = answer_of(program);
  std::fputs(emulation_text(program, answer, request.look).c_str(), stderr);
  nlohmann::json more = nlohmann::json::object();
  if (request.afterwards) request.afterwards(program, folder.path(), more);
  // Said, and no reason to hide how the program ended; of one that ended well, it is the end.
  if (request.json_out || !request.json_path.empty()) try {
      write_json(request, program, answer, more);
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "peakbench: %s\n", escaped_controls(error.what()).c_str());
      return process::exit_code(status) == 0 ? kCannotWrite : process::exit_code(status);
    }
  return process::exit_code(status);
}

std::optional<process::ProcessEnd> run_without_limit(const AgainRequest& request) {
  const ProgramSignals signals;
  const LedgerFolder folder;
  const auto cancelled = [&] { return signals.noted() != 0; };
  const auto prepared = prepare(request, folder.path(), false, cancelled);
  if (!prepared) return std::nullopt;
  return run_unattended(request.command, *prepared, request.log, request.limit, cancelled);
}

}  // namespace peakbench::emulator
