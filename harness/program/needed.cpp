#include "program/needed.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "errors/errors.h"
#include "host/run_emulated.h"
#include "program/journal.h"
#include "program/traced.h"
#include "text/printable.h"
#include "trace/summary.h"
#include "units/bytes.h"

namespace peakbench::program {
namespace {

namespace fs = std::filesystem;

struct Peaks {
  std::int64_t allocated_bytes = 0, reserved_bytes = 0;
};

// Of the process with the highest peak.
std::optional<Peaks> peaks_in(const NeededRequest& request, bool failed) {
  auto recorded = read_journals(
      request.folder, {.device = "emulated:" + request.card, .emulated = true, .failed = failed});
  if (!recorded.unread.empty()) return std::nullopt;  // it may be the one with the highest
  const auto run = run_of(std::move(recorded), request.command, request.card, {});
  const auto* const process = fullest(run);
  if (process == nullptr) return std::nullopt;
  const auto memory = trace::summarise(process->trace);
  return Peaks{memory.peak_allocated_bytes, memory.peak_reserved_bytes.value_or(0)};
}

std::string size(std::int64_t bytes) { return size_text(static_cast<std::uint64_t>(bytes)); }

// "ValueError: ...": the last line that is not blank.
std::string last_line(const std::string& words) {
  const auto end = words.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const auto begin = words.find_last_of('\n', end);
  constexpr std::size_t kLongest = 200;
  return printable(words.substr(begin == std::string::npos ? 0 : begin + 1, end - begin))
      .substr(0, kLongest);
}

// Why there is no figure; empty where the program came to its end as it should.
std::string why_not_whole(const process::ProcessEnd& end, std::chrono::seconds limit) {
  using process::Stop;
  if (!end.start_error.empty()) return "it was not started: " + end.start_error;
  if (end.stopped == Stop::kTimeout)
    return fmt::format("it was ended after {} s (--needed-timeout)", limit.count());
  if (end.stopped == Stop::kInterrupt) return "it was interrupted";
  if (end.signal != 0) return fmt::format("it was ended by signal {}", end.signal);
  if (end.exit_code == 0) return "";
  const auto words = last_line(end.last_words);
  return fmt::format("it ended with exit code {}{}", end.exit_code,
                     words.empty() ? "" : ": " + words);
}

std::optional<process::ProcessEnd> run_again(const NeededRequest& request) {
  emulator::AgainRequest again;
  again.card = request.card;
  again.command = request.command;
  again.values = request.values;
  again.log = request.folder / "printed.log";
  again.limit = request.limit;
  again.more_environment = [&](const emulator::BeforeProgram& before) {
    const auto tracer =
        tracer_for(before.torch, tracer_places(emulator::find_installation()), before.cancelled);
    return tracing_environment(tracer, {.journals = request.folder});
  };
  return emulator::run_without_limit(again);
}

// What a program finds (a file that it wrote, memory that is free) may lead it another way.
bool asked_for_more_before(const result::OutOfMemory& facts, const Peaks& peaks) {
  return peaks.allocated_bytes < facts.allocated_bytes + facts.requested_bytes;
}

void take(ProgramRun& run, std::string why, const std::optional<Peaks>& peaks) {
  auto& facts = *run.out_of_memory;
  if (why.empty() && peaks && asked_for_more_before(facts, *peaks))
    why = fmt::format("it went another way and never had the {} that the first run asked for",
                      size(facts.allocated_bytes + facts.requested_bytes));
  if (why.empty() && peaks) {
    facts.needed_bytes = peaks->reserved_bytes;
    facts.needed_allocated_bytes = peaks->allocated_bytes;
    return;
  }
  facts.needed_note =
      fmt::format("run again without a limit, {}{}", why.empty() ? "it recorded nothing" : why,
                  peaks ? fmt::format("; until then its peak was {} allocated, {} reserved",
                                      size(peaks->allocated_bytes), size(peaks->reserved_bytes))
                        : "");
  run.reason += "; " + facts.needed_note;
}

}  // namespace

void find_needed(ProgramRun& run, const NeededRequest& request) {
  if (run.status != result::Status::kOutOfMemory || !run.out_of_memory || !run.emulation) return;
  std::fprintf(
      stderr,
      "\npeakbench: running it once more without a limit, to see what it would have needed "
      "(at most %lld s; --no-needed leaves it out)\n",
      static_cast<long long>(request.limit.count()));
  try {
    const auto end = run_again(request);
    const auto why = end ? why_not_whole(*end, request.limit)
                         : std::string("it was interrupted before it began");
    take(run, why, peaks_in(request, !why.empty()));
  } catch (const ConfigError& error) {
    take(run, error.what(), std::nullopt);
  }
}

std::string needed_text(const ProgramRun& run) {
  if (!run.out_of_memory) return "";
  const auto& facts = *run.out_of_memory;
  if (facts.needed_bytes && facts.needed_allocated_bytes)
    return fmt::format("Without a limit it needs {} allocated, {} reserved{}.\n",
                       size(*facts.needed_allocated_bytes), size(*facts.needed_bytes),
                       run.processes.size() > 1 ? " (the largest process)" : "");
  return facts.needed_note.empty()
             ? ""
             : fmt::format("What it needs is not known: {}.\n", facts.needed_note);
}

}  // namespace peakbench::program
