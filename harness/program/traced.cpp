#include "program/traced.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <set>
#include <sstream>
#include <string_view>

#include "files/file.h"
#include "launch/outcome.h"
#include "process/exit_code.h"
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

std::string how_it_ended(int exit_code) {
  const int signal = exit_code - process::ended_by(0);
  if (signal <= 0 || signal >= NSIG)
    return fmt::format("the program ended with exit code {}", exit_code);
  return fmt::format("the program was {} by {}",
                     signal == SIGINT || signal == SIGTERM ? "interrupted" : "ended",
                     launch::signal_name(signal));
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

// Modules that run another program: `python3 -m torch.distributed.run train.py`.
bool starts_programs(const std::string& module) {
  constexpr std::array kThem = {"torch.distributed", "torch.multiprocessing", "accelerate",
                                "deepspeed",         "cProfile",              "profile",
                                "pdb",               "trace",                 "coverage",
                                "debugpy",           "viztracer"};
  return std::ranges::any_of(kThem, [&](const std::string& one) {
    return module == one || module.starts_with(one + ".");
  });
}

// What Python is given to run: of any name, a folder too; empty where that is a module or code.
std::string script_after(const std::vector<std::string>& words, std::size_t python) {
  for (auto i = python + 1; i < words.size(); ++i) {
    const auto& word = words[i];
    if (word == "-m" || word == "-c" || word == "-") return "";
    if (word == "-W" || word == "-X") ++i;
    if (!word.starts_with("-")) return fs::path(word).filename().string();
  }
  return "";
}

// Of a shell that is given its script as an argument, the script's.
std::vector<std::string> words_of(const std::vector<std::string>& command) {
  constexpr std::array kShells = {"sh", "bash", "dash", "zsh", "ksh"};
  std::vector<std::string> words;
  bool shell = false, script = false;
  for (const auto& word : command) {
    if (script) {
      std::string text = word;
      constexpr std::string_view kBetween = "\"';&|()<>{}$\n\t";
      for (char& c : text)
        if (kBetween.find(c) != std::string_view::npos) c = ' ';
      words.clear();
      std::istringstream stream(text);
      for (std::string part; stream >> part;) words.push_back(part);
      return words;
    }
    if (std::ranges::find(kShells, fs::path(word).filename().string()) != kShells.end())
      shell = true;
    script = shell && word.starts_with("-") && word.ends_with("c") && !word.starts_with("--");
    words.push_back(word);
  }
  return words;
}

}  // namespace

std::string name_of(const std::vector<std::string>& command) {
  if (command.empty()) return "program";
  const auto words = words_of(command);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "-m" && i + 1 < words.size()) {
      ++i;
      if (!starts_programs(words[i])) return words[i];
      continue;
    }
    const auto file = fs::path(words[i]).filename().string();
    if (file.ends_with(".py") || file.ends_with(".sh")) return file;
    if (!file.starts_with("python")) continue;
    if (const auto script = script_after(words, i); !script.empty()) return script;
  }
  const auto first = std::ranges::find_if(words, [&](const std::string& word) {
    return word != "env" && word.find('=') == std::string::npos && !word.starts_with("-");
  });
  return fs::path(first == words.end() ? words.front() : *first).filename().string();
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

void complain(const std::vector<Journal>& journals) {
  for (const auto& journal : journals) {
    if (journal.stopped != tracer::Stopped::kNot)
      std::fprintf(stderr, "peakbench: process %d was traced only in part: %s\n", journal.pid,
                   journal.stopped == tracer::Stopped::kNoSpace ? "the disk has no room for more"
                                                                : "more than 16 GiB were recorded");
    if (journal.disagreements > 0)
      std::fprintf(stderr,
                   "peakbench: process %d: at %llu events the allocator's own figure differs from "
                   "the trace's\n",
                   journal.pid, static_cast<unsigned long long>(journal.disagreements));
  }
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
    run.reason = how_it_ended(exit_code);
    for (const auto& process : run.processes)
      if (run.status == result::Status::kCrashed) describe_failure(process.trace, run);
  }
  if (run.processes.empty()) {
    run.status = result::Status::kUnsupported;
    run.reason = why_nothing(journals);
  }
  return run;
}

std::vector<std::string> add_untraced(ProgramRun& run, const std::vector<Untraced>& processes) {
  std::vector<std::string> sentences;
  for (const auto& process : processes)
    sentences.push_back(fmt::format(
        "process {} took {} of the card and was not traced: it was forked, or ran Python "
        "without its environment",
        process.pid, size_text(static_cast<std::uint64_t>(process.used_bytes))));
  if (sentences.empty() || !run.emulation || !run.emulation->verdict) return sentences;
  auto& verdict = *run.emulation->verdict;
  if (doubt(verdict.kind) < doubt(result::VerdictKind::lower_bound))
    verdict.kind = result::VerdictKind::lower_bound;
  verdict.reasons.insert(verdict.reasons.end(), sentences.begin(), sentences.end());
  return sentences;
}

Fullest fullest_of(const ProgramRun& run) {
  Fullest fullest;
  for (const auto& process : run.processes) {
    auto found = trace::lifetimes(process.trace);
    const auto here = trace::find_peak(process.trace, found);
    if (fullest.trace != nullptr && here.allocated_bytes <= fullest.peak.allocated_bytes) continue;
    fullest = {&process.trace, std::move(found), here};
  }
  return fullest;
}

std::string summary_text(const ProgramRun& run, const Fullest& fullest_process) {
  if (fullest_process.trace == nullptr) return run.reason + "\n";
  const auto& [fullest, lifetimes, peak] = fullest_process;
  const auto most = peak.allocated_bytes;
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
