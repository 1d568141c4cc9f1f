#include "program/traced.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <numeric>
#include <set>

#include "files/file.h"
#include "text/printable.h"
#include "trace/lifetimes.h"
#include "trace/lines.h"
#include "trace/maxima.h"
#include "tracer/journal_format.h"
#include "units/bytes.h"

namespace peakbench::program {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLines = 8;  // that a terminal shows
constexpr double kMostOfIt = 0.9;

bool ends_out_of_memory(const trace::Trace& trace) {
  return !trace.events.empty() && trace.events.back().kind == trace::EventKind::kOutOfMemory;
}

void describe_failure(const trace::Trace& trace, ProgramRun& run) {
  if (!ends_out_of_memory(trace)) return;
  const auto& failed = trace.events.back();
  result::OutOfMemory facts;
  facts.requested_bytes = failed.requested_bytes;
  facts.phase = trace::to_string(failed.phase);
  facts.step = std::max(failed.step, 0);
  if (failed.module != trace::kNone)
    facts.module = trace.modules[static_cast<std::size_t>(failed.module)];
  if (failed.op != trace::kNone) facts.op = trace.operators[static_cast<std::size_t>(failed.op)];
  for (const auto& event : trace.events) {
    if (event.space != failed.space) continue;
    if (event.kind == trace::EventKind::kAlloc) facts.allocated_bytes += event.block_bytes;
    if (event.kind == trace::EventKind::kFreeRequested) facts.allocated_bytes -= event.block_bytes;
  }
  const auto line = trace::own_line(trace, failed.stack);
  run.status = result::Status::kOutOfMemory;
  run.reason =
      fmt::format("{} more were asked for{}, with {} allocated", size_text(facts.requested_bytes),
                  line.file.empty() ? "" : fmt::format(" by {}:{}", line.file, line.line),
                  size_text(facts.allocated_bytes));
  run.out_of_memory = facts;
}

std::string why_nothing(const std::vector<Journal>& journals) {
  return journals.empty() ? "nothing was recorded: the program did not import PyTorch, or ran "
                            "Python without its environment (-I, -E, -S)"
                          : "nothing was allocated through PyTorch";
}

std::string where(const trace::SourceLine& line) {
  if (line.file.empty()) return "(no line of Python)";
  return fmt::format("{}:{} ({})", line.file, line.line, line.function);
}

std::string categories_of(const std::array<std::int64_t, trace::kCategoryCount>& bytes) {
  std::array<std::size_t, trace::kCategoryCount> order{};
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::string text;
  for (const auto i : order) {
    if (bytes[i] <= 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ",
                        trace::to_string(static_cast<trace::Category>(i)), size_text(bytes[i]));
  }
  std::ranges::replace(text, '_', ' ');
  return text;
}

std::string lines_text(const std::vector<trace::LineShare>& lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kLines; ++i)
    text += fmt::format("  {:>10}  {:>5.1f}%  {}  {}\n", size_text(lines[i].bytes),
                        100 * lines[i].share, where(lines[i].line),
                        categories_of(lines[i].by_category));
  if (lines.size() <= kLines) return text;
  std::int64_t rest = 0;
  for (std::size_t i = kLines; i < lines.size(); ++i) rest += lines[i].bytes;
  return text +
         fmt::format("  {:>10}          {} more lines\n", size_text(rest), lines.size() - kLines);
}

std::string in_words(trace::Phase phase, std::int32_t step) {
  std::string text = trace::to_string(phase);
  std::ranges::replace(text, '_', ' ');
  return step >= 0 ? fmt::format("{} of step {}", text, step + 1) : text;
}

// One line that calls a library's training says little: then those that it calls, too.
std::string lines_of(const trace::Trace& trace, const std::vector<trace::Lifetime>& lifetimes,
                     std::uint64_t event, const std::string& title) {
  const auto lines = trace::lines_at(trace, lifetimes, event);
  auto text = fmt::format("\n{}, by line of your code:\n{}", title, lines_text(lines));
  if (lines.empty() || lines.front().share <= kMostOfIt) return text;
  const auto called = lines_text(
      trace::lines_at(trace, lifetimes, event, trace::kOwnSpace, trace::LineOf::kAnyLibrary));
  return called == lines_text(lines) ? text : text + "\nBy line of what it calls:\n" + called;
}

// Those that the program went on after; the allocator tries more than once.
std::string caught_text(const trace::Trace& trace) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> lines;
  for (std::size_t i = 0; i + 1 < trace.events.size(); ++i) {
    const auto& event = trace.events[i];
    if (event.kind != trace::EventKind::kOutOfMemory) continue;
    const auto line =
        fmt::format("  {} asked for at {}, in {}\n", size_text(event.requested_bytes),
                    where(trace::own_line(trace, event.stack)), in_words(event.phase, event.step));
    if (lines.empty() || lines.back() != line) lines.push_back(line);
  }
  std::string text = lines.empty() ? "" : "\nRan out of memory, and went on:\n";
  for (std::size_t i = 0; i < lines.size() && i < kMost; ++i) text += lines[i];
  if (lines.size() > kMost) text += fmt::format("  and {} times more\n", lines.size() - kMost);
  return text;
}

}  // namespace

std::string name_of(const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "-m" && i + 1 < command.size()) {
      if (command[i + 1].starts_with("torch.distributed")) continue;
      return command[i + 1];
    }
    if (command[i].ends_with(".py") || command[i].ends_with(".sh"))
      return fs::path(command[i]).filename().string();
  }
  return command.empty() ? "program" : fs::path(command.front()).filename().string();
}

Tracer tracer_for(const std::optional<pytorch::TorchInUse>& torch, const std::string& built_for,
                  const fs::path& folder) {
  Tracer tracer{folder / "tracer/peakbench_tracer.so", folder / "tracer", ""};
  if (torch && torch->version != built_for)
    tracer.library = folder.parent_path().parent_path() / "workers" / ("torch-" + torch->version) /
                     "lib/peakbench/tracer/peakbench_tracer.so";
  if (files::is_there(tracer.library.string())) return tracer;
  tracer.problem =
      torch && torch->version != built_for
          ? fmt::format(
                "there is no tracer for the program's PyTorch {}, only for {}: use a Python "
                "with that one; `peakbench emulate` works with any",
                torch->version, built_for)
          : fmt::format("{} is not there; is the installation whole?", tracer.library.string());
  return tracer;
}

process::Environment tracing_environment(const Tracer& tracer, const TracingRequest& request) {
  const char* before = std::getenv("PYTHONPATH");
  return {{tracer::kFolderVariable, request.journals.string()},
          {tracer::kLibraryVariable, tracer.library.string()},
          {tracer::kCpuVariable, request.cpu ? "1" : "0"},
          {tracer::kTimesVariable, request.times ? "1" : "0"},
          {"PYTHONPATH",
           tracer.python.string() + (before && *before ? std::string(":") + before : "")}};
}

ProgramRun run_of(std::vector<Journal> journals, const std::vector<std::string>& command,
                  const std::string& device, int exit_code) {
  ProgramRun run;
  run.name = name_of(command);
  run.device = device;
  run.command = command;
  std::set<std::int64_t> ranks;
  for (auto& journal : journals) {
    // Processes beside the ranks have a rank's number, or none: each gets one of its own.
    std::int64_t rank = journal.rank;
    while (!ranks.insert(rank).second) ++rank;
    run.processes.push_back({rank, std::move(journal.trace)});
    auto& trace = run.processes.back().trace;
    if (device.empty()) trace.device = trace.spaces[static_cast<std::size_t>(trace.own_space)];
    if (run.device.empty()) run.device = trace.device;
  }
  if (exit_code != 0) {
    run.status = result::Status::kCrashed;
    run.reason = fmt::format("the program ended with exit code {}", exit_code);
    for (const auto& process : run.processes)
      if (run.status == result::Status::kCrashed) describe_failure(process.trace, run);
  }
  if (run.processes.empty()) {
    if (exit_code == 0) run.status = result::Status::kUnsupported;
    run.reason += (run.reason.empty() ? "" : "; ") + why_nothing(journals);
  }
  return run;
}

std::vector<Doubt> doubts_of(const std::vector<Journal>& journals,
                             const std::vector<Untraced>& processes) {
  std::vector<Doubt> doubts;
  for (const auto& journal : journals) {
    if (journal.stopped != tracer::Stopped::kNot)
      doubts.push_back({fmt::format("process {} was traced only in part: {}", journal.pid,
                                    journal.stopped == tracer::Stopped::kNoSpace
                                        ? "the disk has no room for more"
                                        : "more than 16 GiB were recorded")});
    if (journal.disagreements > 0)
      doubts.push_back({fmt::format("process {}: at {} events the allocator's own figure differs "
                                    "from the trace's",
                                    journal.pid, journal.disagreements),
                        result::VerdictKind::unreliable});
  }
  for (const auto& process : processes)
    doubts.push_back({fmt::format(
        "process {} took {} of the card and was not traced: it was forked, or ran Python "
        "without its environment",
        process.pid, size_text(static_cast<std::uint64_t>(process.used_bytes)))});
  return doubts;
}

void add_doubts(ProgramRun& run, const std::vector<Doubt>& doubts) {
  if (!run.emulation || !run.emulation->verdict) return;
  auto& verdict = *run.emulation->verdict;
  for (const auto& one : doubts) {
    if (result::doubt(verdict.kind) < result::doubt(one.kind))
      verdict.kind = one.kind;
    else if (verdict.kind == result::VerdictKind::upper_bound)  // and a lower one at once
      verdict.kind = result::VerdictKind::unreliable;
    verdict.reasons.push_back(one.sentence);
  }
}

std::string summary_text(const ProgramRun& run) {
  if (run.processes.empty()) return run.reason + "\n";
  const trace::Trace* fullest = nullptr;
  std::int64_t most = -1;
  std::vector<trace::Lifetime> lifetimes;
  trace::Peak peak;
  for (const auto& process : run.processes) {
    auto found = trace::lifetimes(process.trace);
    const auto here = trace::find_peak(process.trace, found);
    if (here.allocated_bytes <= most) continue;
    most = here.allocated_bytes;
    fullest = &process.trace;
    lifetimes = std::move(found);
    peak = here;
  }
  std::string text = fmt::format("Peak allocated: {} in {}.\n  {}\n", size_text(most),
                                 in_words(peak.phase, peak.step), categories_of(peak.by_category));
  text += lines_of(*fullest, lifetimes, peak.event, "What fills it");
  if (run.status == result::Status::kOutOfMemory && ends_out_of_memory(*fullest)) {
    const auto& failed = fullest->events.back();
    text += fmt::format("\nOut of memory: {} asked for at {}, in {}.\n",
                        size_text(static_cast<std::uint64_t>(failed.requested_bytes)),
                        where(trace::own_line(*fullest, failed.stack)),
                        in_words(failed.phase, failed.step));
    text += lines_of(*fullest, lifetimes, fullest->events.size() - 1, "What filled the card then");
  }
  text += caught_text(*fullest);
  return escaped_controls(text);
}

}  // namespace peakbench::program
