#include "programs/traced.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string_view>

#include "base/errors.h"
#include "base/file.h"
#include "base/numbers.h"
#include "launch/machine.h"
#include "launch/outcome.h"
#include "recording/journal.h"
#include "trace/lifetimes.h"
#include "trace/lines.h"
#include "trace/maxima.h"
#include "trace/timeline.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;

bool ends_out_of_memory(const trace::Trace& trace) {
  return !trace.events.empty() && trace.events.back().kind == trace::EventKind::kOutOfMemory;
}

void describe_failure(const trace::Trace& trace, ProgramRun& run) {
  if (!ends_out_of_memory(trace)) return;
  const auto& failed = trace.events.back();
  records::OutOfMemory facts;
  facts.requested_bytes = failed.requested_bytes;
  facts.phase = trace::to_string(failed.phase);
  facts.step = std::max(failed.step, 0);
  facts.module = trace::word_at(trace.modules, failed.module);
  facts.op = trace::word_at(trace.operators, failed.op);
  std::int64_t reserved = 0;
  for (const auto& event : trace.events) {
    if (event.space != failed.space) continue;
    reserved += trace::reserved_change(event);
    if (event.kind == trace::EventKind::kAlloc) facts.allocated_bytes += event.block_bytes;
    if (event.kind == trace::EventKind::kFreeRequested) facts.allocated_bytes -= event.block_bytes;
  }
  if (trace.spaces[static_cast<std::size_t>(failed.space)].starts_with("cuda")) {
    facts.reserved_bytes = reserved;
    facts.limit_bytes = reserved + static_cast<std::int64_t>(failed.address);  // what was free
  }
  const auto line = trace::own_line(trace, failed.stack);
  run.status = records::Status::kOutOfMemory;
  run.reason = fmt::format(
      "{} more were asked for{}, with {} allocated", size_text(facts.requested_bytes),
      line.file.empty() ? "" : fmt::format(" by {}:{}", trace::library_file(line.file), line.line),
      size_text(facts.allocated_bytes));
  run.out_of_memory = facts;
}

std::int64_t failures_in(const ProgramRun& run) {
  std::int64_t count = 0;
  for (const auto& process : run.processes)
    count += std::ranges::count(process.trace.events, trace::EventKind::kOutOfMemory,
                                &trace::Event::kind);
  return count;
}

std::string how_it_ended(int exit_code) {
  const int signal = exit_code - process::ended_by(0);
  if (signal <= 0 || signal >= NSIG)
    return fmt::format("the program ended with exit code {}", exit_code);
  return fmt::format("the program was {} by {}",
                     signal == SIGINT || signal == SIGTERM ? "interrupted" : "ended",
                     launch::signal_name(signal));
}

std::string why_nothing(const Recorded& recorded, bool on_card) {
  if (!recorded.unread.empty()) return "nothing was recorded: " + recorded.unread.front().why;
  if (recorded.any_silent)
    return on_card ? "nothing was allocated on the card: the program used PyTorch on the CPU alone"
                   : "nothing was allocated through PyTorch";
  return "nothing was recorded: the program did not import PyTorch, or ended before it was "
         "imported, or ran Python without its environment (-I, -E, -S)";
}

pytorch::LibraryBuilds tracer_builds(const TracerPlaces& places) {
  return {.built = places.folder / "tracer/peakbench_tracer.so",
          .built_for = places.built_for,
          .workers = places.folder.parent_path().parent_path() / "workers",
          .in_worker = "lib/peakbench/tracer/peakbench_tracer.so",
          .libraries = places.folder.parent_path().parent_path() / "libraries",
          .sources = {.kind = "tracer",
                      .folder = places.folder / "tracer/source",
                      .whole = "tracer/whole.cpp",
                      .libraries = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so"}}};
}

// Modules that run another program: `python3 -m torch.distributed.run train.py`.
bool starts_programs(const std::string& module) {
  constexpr std::array kThem = {"torch.distributed",
                                "torch.multiprocessing",
                                "accelerate",
                                "deepspeed",
                                "cProfile",
                                "profile",
                                "pdb",
                                "trace",
                                "coverage",
                                "debugpy",
                                "viztracer"};
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

TracerPlaces tracer_places(const emulator::Installation& installation) {
  return {installation.folder.parent_path(), installation.libtorch_version};
}

Tracer tracer_for(const std::optional<pytorch::TorchInUse>& torch, const TracerPlaces& places,
                  const std::function<bool()>& cancelled) {
  if (torch && torch->cuda.empty() && torch->version != places.built_for)
    throw ConfigError(
        fmt::format("there is no tracer for PyTorch {} in {}, a build without CUDA: it is compiled "
                    "for builds with CUDA 12 or 13; install one of these",
                    torch->version, torch->folder.string()));
  Tracer tracer{pytorch::library_for(torch, tracer_builds(places), cancelled),
                places.folder / "tracer"};
  if (!tracer.library.problem.empty())
    throw ConfigError(
        fmt::format("there is no tracer for PyTorch {}: {}; `peakbench emulate` "
                    "works without one",
                    tracer.library.torch_version, tracer.library.problem));
  if (!files::is_there(tracer.library.path.string()))
    throw ConfigError(fmt::format("{} is not there; is the installation complete?",
                                  tracer.library.path.string()));
  return tracer;
}

std::optional<Tracer> tracer_at_hand(const std::optional<pytorch::TorchInUse>& torch,
                                     const TracerPlaces& places) {
  const auto library = pytorch::library_at_hand(torch, tracer_builds(places));
  if (!library || !files::is_there(library->path.string())) return std::nullopt;
  return Tracer{*library, places.folder / "tracer"};
}

namespace {

// A number each: its rank's, of the first process that has it. The others get numbers above.
std::vector<std::int64_t> numbers_of(const std::vector<Journal>& journals) {
  std::set<std::int64_t> ranks;
  std::vector<std::int64_t> numbers;
  for (const auto& one : journals) {
    const bool is_its_own = one.rank >= 0 && ranks.insert(one.rank).second;
    numbers.push_back(is_its_own ? one.rank : -1);
  }
  std::int64_t next = ranks.empty() ? 0 : *ranks.rbegin() + 1;
  for (auto& number : numbers)
    if (number < 0) number = next++;
  return numbers;
}

std::string in_words(trace::Phase phase, std::int32_t step) {
  std::string text = trace::to_string(phase);
  std::ranges::replace(text, '_', ' ');
  return step >= 0 ? fmt::format("{} of step {}", text, step + 1) : text;
}

}  // namespace

bool keep_steps_of(std::vector<Journal>& journals, const StepRange& range) {
  bool any = false;
  for (auto& journal : journals) {
    std::string sentence;
    try {
      const auto peak = trace::find_peak(journal.trace, trace::lifetimes(journal.trace));
      std::int32_t steps = 0;
      for (const auto& event : journal.trace.events) steps = std::max(steps, event.step + 1);
      const bool cut = keep_steps(journal.trace, range);
      any = any || cut;
      sentence = fmt::format("{} {}", steps, steps == 1 ? "step" : "steps");
      if (!cut)
        sentence += " and none of these: all of its trace stays";
      else
        sentence += fmt::format("; figures are of the kept ones. Its overall peak was {} in {}",
                                size_text(peak.allocated_bytes), in_words(peak.phase, peak.step));
    } catch (const TraceError& error) {
      sentence = fmt::format("an inconsistent trace, which is kept completely: {}", error.what());
    }
    std::fprintf(stderr, "\n--steps: process %d had %s.\n", journal.pid, sentence.c_str());
  }
  return any;
}

process::Environment tracing_environment(const Tracer& tracer, const TracingRequest& request) {
  const char* before = std::getenv("PYTHONPATH");
  return {{recording::kFolderVariable, request.journals.string()},
          {recording::kLibraryVariable, tracer.library.path.string()},
          {recording::kTorchVariable, tracer.library.torch_version},
          {recording::kCpuVariable, request.cpu ? "1" : "0"},
          {recording::kTimesVariable, request.times ? "1" : "0"},
          {recording::kQuietVariable, request.quiet ? "1" : "0"},
          {recording::kMostVariable,
           std::to_string(request.most_bytes > 0
                              ? request.most_bytes
                              : most_recorded_bytes(launch::host_memory().available_bytes))},
          {"PYTHONPATH",
           tracer.python.string() + (before && *before ? std::string(":") + before : "")}};
}

ProgramRun run_of(Recorded recorded, const std::vector<std::string>& command,
                  const std::string& device, const HowItEnded& how) {
  ProgramRun run;
  run.name = name_of(command);
  run.device = device;
  run.command = command;
  const auto numbers = numbers_of(recorded.journals);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    auto& journal = recorded.journals[i];
    run.processes.push_back({numbers[i], std::move(journal.trace), std::move(journal.nccl_calls)});
    auto& trace = run.processes.back().trace;
    if (device.empty()) trace.device = trace.spaces[static_cast<std::size_t>(trace.own_space)];
    if (run.device.empty()) run.device = trace.device;
  }
  // Ctrl-C may reach the program alone.
  const int signal =
      how.interrupted == 0 && how.exit_code == process::ended_by(SIGINT) ? SIGINT : how.interrupted;
  if (signal != 0) {  // however it ended then: a handler may have it end well
    run.status = records::Status::kInterrupted;
    run.reason = fmt::format("the program was interrupted by {}: its figures are those until then",
                             launch::signal_name(signal));
  } else if (how.exit_code != 0) {
    run.status = records::Status::kCrashed;
    run.reason = how_it_ended(how.exit_code);
    for (const auto& process : run.processes) {
      if (run.status != records::Status::kCrashed) break;
      describe_failure(process.trace, run);
      if (run.status == records::Status::kOutOfMemory && run.processes.size() > 1)
        run.reason += fmt::format(" (rank {})", process.rank);
    }
  }
  if (const auto caught = failures_in(run); run.status == records::Status::kOk && caught > 0)
    run.settings[records::kCaughtOutOfMemory] = caught;
  if (run.processes.empty()) {
    if (how.exit_code == 0) run.status = records::Status::kUnsupported;
    run.reason +=
        (run.reason.empty() ? "" : "; ") + why_nothing(recorded, device.starts_with("emulated:"));
  }
  return run;
}

std::vector<Doubt> doubts_of(const Recorded& recorded, std::vector<Untraced> users,
                             bool knows_all_users) {
  std::vector<Doubt> doubts;
  for (const auto& journal : recorded.journals) {
    if (journal.stopped != recording::Stopped::kNot)
      doubts.push_back({fmt::format(
          "process {} was traced only in part: {}", journal.pid,
          journal.stopped == recording::Stopped::kNoSpace
              ? std::string("the disk is full")
              : fmt::format("its recording reached {}, which is all that "
                            "may be read in the machine's memory",
                            size_text(static_cast<std::uint64_t>(journal.recorded_bytes))))});
    if (journal.disagreements > 0)
      doubts.push_back({fmt::format("process {}: at {} events the allocator's own figure differs "
                                    "from the trace's",
                                    journal.pid, journal.disagreements),
                        records::VerdictKind::unreliable});
  }
  std::erase_if(users, [&](const Untraced& user) {
    return std::ranges::find(recorded.journals, user.pid, &Journal::pid) != recorded.journals.end();
  });
  for (const auto& lost : recorded.unread) {
    const auto user = std::ranges::find(users, lost.pid, &Untraced::pid);
    if (user != users.end())
      user->why = lost.why;
    else if (!knows_all_users)
      users.push_back(lost);
  }
  for (const auto& user : users) doubts.push_back({sentence_of(user)});
  return doubts;
}

void add_doubts(ProgramRun& run, const std::vector<Doubt>& doubts) {
  for (const auto& one : doubts) run.settings["untraced"].push_back(one.sentence);
  if (!run.emulation || !run.emulation->verdict) return;
  auto& verdict = *run.emulation->verdict;
  for (const auto& one : doubts) {
    if (records::doubt(verdict.kind) < records::doubt(one.kind))
      verdict.kind = one.kind;
    else if (verdict.kind == records::VerdictKind::upper_bound)  // and a lower one at once
      verdict.kind = records::VerdictKind::unreliable;
    verdict.reasons.push_back(one.sentence);
  }
}

const ProgramProcess* fullest(const ProgramRun& run) {
  const ProgramProcess* found = nullptr;
  std::int64_t most = -1;
  for (const auto& process : run.processes) {
    const auto here = trace::find_peak(process.trace, trace::lifetimes(process.trace));
    if (here.allocated_bytes <= most) continue;
    most = here.allocated_bytes;
    found = &process;
  }
  return found;
}

bool ended_of_it(const ProgramRun& run, const ProgramProcess& process) {
  return run.status == records::Status::kOutOfMemory && ends_out_of_memory(process.trace);
}

}  // namespace peakbench::programs
