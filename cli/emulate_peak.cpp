#include "cli/emulate_peak.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "files/file.h"
#include "files/read_file.h"
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

// What a process, or without one any of them, took at the most by PyTorch's own count; 0: nothing.
std::uint64_t counted_by_pytorch(const emulator::EmulatedProgram& program,
                                 std::optional<std::int32_t> pid = std::nullopt) {
  std::uint64_t most = 0;
  for (const auto& use : emulator::card_uses(program.ledgers))
    if (!pid || use.process->pid == *pid) most = std::max(most, use.figures().peak_allocated_bytes);
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

std::string name_of(const program::Journal& journal) {
  return journal.rank < 0 ? fmt::format("process {}", journal.pid)
                          : fmt::format("rank {} (process {})", journal.rank, journal.pid);
}

std::string not_known(const std::string& why) {
  return fmt::format("not known: {}; `peakbench trace` may tell it", why);
}

// What is said of the peak, and what is written of it.
struct Told {
  std::string whole = {};  // as `emulate --details` ends
  analysis::PeakBrief brief = {};
  std::string in_place = {};      // of both: why nothing is known, and what tells it
  nlohmann::json json = nullptr;  // nothing is known
  std::string misplaced = {};     // as tell_peak has it
};

// Its text is made for one view only.
Told told_of(const emulator::EmulatedProgram& program, const fs::path& folder,
             emulator::View view) {
  auto recorded =
      program::read_journals(folder / kJournals, {.device = "emulated:" + program.card.spec,
                                                  .emulated = true,
                                                  .failed = program.wait_status != 0});
  const auto count = recorded.journals.size();
  const auto found = largest(std::move(recorded.journals));
  if (!found) return {};
  const auto& journal = found->journal;
  const auto counted = counted_by_pytorch(program, journal.pid);
  if (const auto other = larger_user(program, journal.pid, counted))
    return {.in_place = not_known(
                fmt::format("process {} took more of the card, and was not traced", *other))};
  if (static_cast<std::uint64_t>(found->peak.allocated_bytes) == counted) {
    const analysis::Teller teller{count > 1 ? name_of(journal) : "", count};
    Told told{.json = analysis::peak_json(journal.trace, found->lifetimes)};
    if (view == emulator::View::kDetails)
      told.whole = analysis::peak_in_short(journal.trace, found->lifetimes, teller);
    else if (view == emulator::View::kSummary)
      told.brief = analysis::peak_brief(journal.trace, found->lifetimes);
    told.json["pid"] = journal.pid;
    told.json["rank"] = journal.rank < 0 ? nlohmann::json() : nlohmann::json(journal.rank);
    return told;
  }
  return {.in_place = not_known(
              journal.stopped != tracer::Stopped::kNot
                  ? "it did too much to be recorded in passing"
                  : fmt::format("the trace says {}, PyTorch {}",
                                size_text(static_cast<std::uint64_t>(found->peak.allocated_bytes)),
                                size_text(counted)))};
}

// The line that the first process to fail ended with; empty where none is known.
std::string last_line(const fs::path& journals) {
  std::optional<fs::file_time_type> first;
  std::string line;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(journals, ignored)) {
    if (entry.path().extension() != tracer::kRaisedSuffix) continue;
    const auto time = entry.last_write_time();
    if (first && *first <= time) continue;
    first = time;
    line = files::read_regular_file(entry.path().string(), files::kMostSmallText);
  }
  return line.substr(0, line.find('\n'));
}

bool has_journal(const fs::path& journals) {
  std::error_code ignored;
  return std::ranges::any_of(fs::directory_iterator(journals, ignored), [](const auto& entry) {
    return entry.path().extension() == tracer::kSuffix;
  });
}

// Why a program has used no card, as far as is known.
std::string why_no_card(const emulator::EmulatedProgram& program, const fs::path& folder) {
  if (has_journal(folder / kJournals))
    return "It imported PyTorch and took nothing of the card. Do the model and the batches go to "
           "\"cuda\"?";
  return program.torch ? "It did not import PyTorch."
                       : "It did not import PyTorch, and no PyTorch was found for it (pip install "
                         "torch; no GPU is needed).";
}

// A program that does not know an option ends before it uses the card.
bool ended_early(const emulator::EmulatedProgram& program) {
  return program.wait_status != 0 && emulator::card_uses(program.ledgers).empty();
}

// The lines below the answer: what the program ended with, its peak, what fills it, what to try.
std::string short_lines(const emulator::EmulatedProgram& program, const fs::path& folder,
                        const Told& told, const emulator::Look& look) {
  std::string text;
  if (const auto line = last_line(folder / kJournals); !line.empty())
    text += emulator::labelled("Ended with", line, look);
  if (ended_early(program) && !told.misplaced.empty())
    return text + emulator::labelled("Why", told.misplaced, look);
  if (emulator::card_uses(program.ledgers).empty())
    return text + emulator::labelled("Why", why_no_card(program, folder), look);
  if (told.brief.when.empty()) {
    if (const auto most = counted_by_pytorch(program))
      text += emulator::labelled("Peak", size_text(most) + " allocated by tensors", look);
    return text +
           (told.in_place.empty() ? "" : emulator::labelled("Filled by", told.in_place, look));
  }
  return text + peak_lines(told.brief, look);
}

// The same where everything is printed: what fills the peak ends it.
std::string whole_text(const emulator::EmulatedProgram& program, const Told& told,
                       const emulator::Look& look) {
  if (ended_early(program) && !told.misplaced.empty())
    return emulator::labelled("Why", told.misplaced, look);
  if (!told.in_place.empty())
    return "\n" + emulator::labelled("What fills the peak", told.in_place, look);
  return told.whole.empty() ? "" : escaped_controls("\n" + told.whole);
}

}  // namespace

std::string peak_lines(const analysis::PeakBrief& brief, const emulator::Look& look) {
  auto text = emulator::labelled("Peak", brief.when, look);
  text += emulator::labelled("By category", brief.categories, look);
  if (!brief.fills.empty()) text += emulator::labelled("Filled by", brief.fills, look);
  return text + emulator::labelled(
                    "Try",
                    brief.advice.empty() ? "nothing: no likely mistake was found" : brief.advice,
                    look);
}

void tell_peak(emulator::EmulateRequest& request, const std::string& misplaced) {
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
  request.afterwards = [state, misplaced, &look = request.look](
                           const emulator::EmulatedProgram& program, const fs::path& folder,
                           nlohmann::json& figures) {
    Told told;
    if (state->traced) try {
        told = told_of(program, folder, look.view);
      } catch (const std::exception& error) {  // nothing of the figures rests on it
        told.in_place = not_known(error.what());
      }
    else if (!state->compiled_for.empty() && !emulator::card_uses(program.ledgers).empty())
      told.in_place = fmt::format(
          "`peakbench trace` tells it, and `emulate` once a tracer is compiled for PyTorch {} "
          "(trace does that)",
          printable(state->compiled_for));
    figures["peak"] = std::move(told.json);
    told.misplaced = misplaced;
    if (look.view == emulator::View::kSummary)
      std::fputs(short_lines(program, folder, told, look).c_str(), stderr);
    else if (look.view == emulator::View::kDetails)
      std::fputs(whole_text(program, told, look).c_str(), stderr);
  };
}

}  // namespace peakbench::cli
