#include "cli/emulate_peak.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "errors/errors.h"
#include "host/card_use.h"
#include "program/traced.h"
#include "reports/analysis/peak_text.h"
#include "text/printable.h"
#include "trace/lifetimes.h"
#include "trace/maxima.h"
#include "units/bytes.h"

namespace peakbench::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJournals = "journals";   // in the folder of the program's figures
constexpr std::int64_t kMostBytes = 256 << 20;  // of a journal: TMPDIR may be memory

// What a process took at the most by PyTorch's own count; 0: nothing.
std::uint64_t counted_by_pytorch(const emulator::EmulatedProgram& program, std::int32_t pid) {
  std::uint64_t most = 0;
  for (const auto& use : emulator::card_uses(program.ledgers))
    if (use.process->pid == pid) most = std::max(most, use.figures().peak_allocated_bytes);
  return most;
}

// Another process that took more of a card than that many bytes, by PyTorch's count or, where that
// is not known, the card's own.
std::optional<std::int32_t> larger_user(const emulator::EmulatedProgram& program, std::int32_t pid,
                                        std::uint64_t bytes) {
  for (const auto& use : emulator::card_uses(program.ledgers)) {
    const auto figures = use.figures();
    const auto most =
        figures.peak_allocated_bytes > 0 ? figures.peak_allocated_bytes : figures.peak_used_bytes;
    if (use.process->pid != pid && most > bytes) return use.process->pid;
  }
  return std::nullopt;
}

struct Found {
  program::Journal journal;
  std::vector<trace::Lifetime> lifetimes;
  trace::Peak peak;
};

// The process with the highest peak.
std::optional<Found> largest(std::vector<program::Journal> journals) {
  std::optional<Found> found;
  for (auto& journal : journals) {
    auto lifetimes = trace::lifetimes(journal.trace);
    const auto peak = trace::find_peak(journal.trace, lifetimes);
    if (found && found->peak.allocated_bytes >= peak.allocated_bytes) continue;
    found = Found{std::move(journal), std::move(lifetimes), peak};
  }
  return found;
}

std::string not_told(const std::string& why) {
  return fmt::format("\nWhat fills the peak is not told: {}; `peakbench trace` may.\n", why);
}

void tell(const emulator::EmulatedProgram& program, const fs::path& folder,
          nlohmann::json& figures) {
  auto recorded =
      program::read_journals(folder / kJournals, {.device = "emulated:" + program.card.spec,
                                                  .emulated = true,
                                                  .failed = program.wait_status != 0});
  const auto count = recorded.journals.size();
  const auto found = largest(std::move(recorded.journals));
  if (!found) return;
  const auto& journal = found->journal;
  const auto counted = counted_by_pytorch(program, journal.pid);
  std::string text;
  if (const auto other = larger_user(program, journal.pid, counted)) {
    text = not_told(fmt::format("process {} took more of the card, and was not traced", *other));
  } else if (static_cast<std::uint64_t>(found->peak.allocated_bytes) == counted) {
    const analysis::Teller teller{
        count > 1 ? fmt::format("rank {} (process {})", journal.rank, journal.pid) : "", count};
    text = "\n" + analysis::peak_in_short(journal.trace, found->lifetimes, teller);
    auto& peak = figures["peak"] = analysis::peak_json(journal.trace, found->lifetimes);
    peak["pid"] = journal.pid;
    peak["rank"] = journal.rank;
  } else if (journal.stopped != tracer::Stopped::kNot) {
    text = not_told("it did too much to be recorded in passing");
  } else {
    text = not_told(fmt::format("the trace says {}, PyTorch {}",
                                size_text(static_cast<std::uint64_t>(found->peak.allocated_bytes)),
                                size_text(counted)));
  }
  std::fputs(escaped_controls(text).c_str(), stderr);
}

}  // namespace

void tell_peak(emulator::EmulateRequest& request) {
  struct State {
    bool traced = false;
    std::string compiled_for;  // the release that a tracer would have to be compiled for
  };
  const auto state = std::make_shared<State>();
  request.more_environment = [state](const emulator::BeforeProgram& before) {
    *state = {};
    const auto tracer = program::tracer_at_hand(
        before.torch, program::tracer_places(emulator::find_installation()));
    if (!tracer) {
      state->compiled_for = before.torch ? before.torch->version : "";
      return process::Environment{};
    }
    state->traced = true;
    const auto journals = before.folder / kJournals;
    fs::create_directory(journals);
    return program::tracing_environment(
        *tracer, {.journals = journals, .quiet = true, .most_bytes = kMostBytes});
  };
  request.afterwards = [state](const emulator::EmulatedProgram& program, const fs::path& folder,
                               nlohmann::json& figures) {
    figures["peak"] = nullptr;
    try {
      if (state->traced) tell(program, folder, figures);
    } catch (const std::exception& error) {  // nothing of the figures rests on it
      std::fputs(escaped_controls(not_told(error.what())).c_str(), stderr);
    }
    if (!state->compiled_for.empty() && !emulator::card_uses(program.ledgers).empty())
      std::fputs(
          fmt::format("\nWhat fills the peak: `peakbench trace` tells it, and `emulate` once "
                      "a tracer is compiled for PyTorch {} (trace does that).\n",
                      printable(state->compiled_for))
              .c_str(),
          stderr);
  };
}

}  // namespace peakbench::cli
