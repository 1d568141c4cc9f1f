#include "host/run_emulated.h"

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
#include <thread>
#include <utility>
#include <vector>

#include "core/ledger_json.h"
#include "errors/errors.h"
#include "files/file.h"
#include "host/answer.h"
#include "host/card_use.h"
#include "host/device_memory.h"
#include "host/ledger_folder.h"
#include "host/process_report.h"
#include "host/program_signals.h"
#include "host/run_program.h"
#include "host/run_unattended.h"
#include "host/second_guess.h"
#include "json/json_text.h"
#include "process/exit_code.h"
#include "text/printable.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

constexpr int kCannotWrite = 2;

bool is_running(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  // "4711 (python3) S 1 ...": the name may hold anything.
  const auto name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] != 'Z' && text[name_end + 2] != 'X';
}

// The ranks that a program started may still be on their way out when it has ended itself.
std::vector<std::unique_ptr<Ledger>> read_ledgers_at_end(const fs::path& folder, bool quiet) {
  using namespace std::chrono_literals;
  const auto began = std::chrono::steady_clock::now();
  for (bool told = false;; std::this_thread::sleep_for(20ms)) {
    auto ledgers = read_ledgers(folder);
    const auto left = std::ranges::find_if(
        ledgers, [](const auto& one) { return !one->finished && is_running(one->pid); });
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
  const int status =
      run_program(request.command, prepared->environment, signals,
                  request.json_out ? ProgramOutput::kToStandardError : ProgramOutput::kOwn);
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
    asked.second_guess = second_guess({.command = request,
                                       .first = program,
                                       .runs = request.second_guesses,
                                       .limit = limit_after(took),
                                       .quiet = quiet});
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
