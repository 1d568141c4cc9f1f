#include "programs/trace_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/errors.h"
#include "base/numbers.h"
#include "base/printable.h"
#include "emulator/host/card_use.h"
#include "emulator/host/installation.h"
#include "emulator/host/program_signals.h"
#include "emulator/host/run_emulated.h"
#include "host/command.h"
#include "host/process.h"
#include "host/torch_in_use.h"
#include "programs/journal.h"
#include "records/device.h"
#include "trace/summary.h"

namespace peakbench::programs {
namespace {

namespace fs = std::filesystem;

// Once the program is at its end.
struct Ended {
  std::string device;  // of the case; empty: the one that most was traced of
  HowItEnded how;
  std::optional<records::Emulation> emulation;
  bool is_refused_by_host = false;  // memory that the emulated card had
  std::vector<Untraced> users;      // processes that used the device, with a journal or without
  std::map<std::int32_t, std::vector<records::NcclCalls>> nccl_calls = {};  // by process
};

class Tracing {
 public:
  explicit Tracing(const TraceRequest& request) : request_(request) {}

  TracedProgram run() {
    traced_.exit_code = request_.card.empty() ? run_here() : run_on_emulated_card();
    return std::move(traced_);
  }

 private:
  process::Environment environment(const std::optional<pytorch::TorchInUse>& torch, bool emulated,
                                   const std::function<bool()>& cancelled) {
    const auto tracer = tracer_for(torch, tracer_places(emulator::find_installation()), cancelled);
    torch_ = torch;
    tracer_ = tracer.library.path;
    return tracing_environment(tracer, {.journals = request_.journals,
                                        .cpu = !emulated,
                                        .times = !emulated,
                                        .quiet = request_.quiet});
  }

  int run_on_emulated_card() {
    emulator::EmulateRequest emulated;
    emulated.card = request_.card;
    emulated.command = request_.command;
    emulated.values = request_.values;
    emulated.second_guesses = request_.second_guesses;
    emulated.look = request_.look;
    if (request_.quiet) emulated.look.view = emulator::View::kNothing;
    emulated.more_environment = [this](const emulator::BeforeProgram& before) {
      return environment(before.torch, true, before.cancelled);
    };
    std::optional<Ended> ended;
    emulated.afterwards = [&](const emulator::EmulatedProgram& program, const fs::path&,
                              nlohmann::json&) {
      ended = Ended{.device = request_.device.empty() ? records::emulated_device(program.card.spec)
                                                      : request_.device,
                    .how = {process::exit_code(program.wait_status), program.interrupted},
                    .emulation = records::Emulation{},
                    .is_refused_by_host = std::ranges::any_of(emulator::card_uses(program.ledgers),
                                                              emulator::is_refused_by_host),
                    .users = uses_of(program),
                    .nccl_calls = nccl_calls_of(program)};
      ended->emulation->card = program.card.spec;
      ended->emulation->verdict = program.verdict;
    };
    const int code = emulator::run_emulated(emulated);
    if (ended) finish(*ended);
    return code;
  }

  // By process: what the card gave it.
  static std::vector<Untraced> uses_of(const emulator::EmulatedProgram& program) {
    std::vector<Untraced> uses;
    for (const auto& use : emulator::card_uses(program.ledgers))
      if (const auto most = use.figures().peak_used_bytes; most > 0)
        uses.push_back({use.process->pid, static_cast<std::int64_t>(most)});
    return uses;
  }

  static std::map<std::int32_t, std::vector<records::NcclCalls>> nccl_calls_of(
      const emulator::EmulatedProgram& program) {
    std::map<std::int32_t, std::vector<records::NcclCalls>> all;
    for (const auto* ledger : program.ledgers)
      emulator::for_each_nccl_call(
          *ledger, [&](emulator::NcclCall call, const emulator::LedgerNcclCalls& row) {
            auto& own = all[ledger->pid];  // a process that becomes another program has two ledgers
            auto found = std::ranges::find(own, word_of(call), &records::NcclCalls::call);
            if (found == own.end()) found = own.insert(found, {word_of(call), 0, 0});
            found->calls += static_cast<std::int64_t>(row.calls);
            if (row.unsized_calls > 0) found->bytes.reset();
            if (found->bytes) *found->bytes += static_cast<std::int64_t>(row.bytes);
          });
    return all;
  }

  int run_here() {
    const auto& command = request_.command;
    if (!process::find_program(command[0]))
      throw ConfigError(fmt::format("{}: no such program", command[0]));
    const emulator::ProgramSignals signals;
    const auto cancelled = [&] { return signals.noted() != 0; };
    const auto torch = pytorch::torch_of_command(command, cancelled);
    process::Environment more;
    try {
      more = environment(torch, false, cancelled);
    } catch (const ConfigError&) {
      if (!cancelled()) throw;
    }
    if (cancelled()) return emulator::ended_before_the_program(signals.noted());
    const UntracedWatch watch(tracer_);
    const int code = process::exit_code(emulator::run_program(command, more, signals));
    signals.restore();
    auto users = watch.found(request_.journals);
    std::ranges::copy(forked_untraced(request_.journals), std::back_inserter(users));
    finish({.device = request_.device,
            .how = {code, signals.came_for_program()},
            .emulation = std::nullopt,
            .is_refused_by_host = false,
            .users = users,
            .nccl_calls = {}});
    return code;
  }

  void finish(const Ended& ended) {
    auto recorded = read_journals(request_.journals, {.device = ended.device,
                                                      .emulated = ended.emulation.has_value(),
                                                      .has_times = !ended.emulation,
                                                      .failed = ended.how.exit_code != 0});
    for (auto& journal : recorded.journals)
      if (const auto found = ended.nccl_calls.find(journal.pid); found != ended.nccl_calls.end())
        journal.nccl_calls = found->second;
    traced_.doubts = doubts_of(recorded, ended.users, ended.emulation.has_value());
    const bool is_part = request_.steps && keep_steps_of(recorded.journals, *request_.steps);
    auto& run =
        traced_.run.emplace(run_of(std::move(recorded), request_.command, ended.device, ended.how));
    run.emulation = ended.emulation;
    if (ended.is_refused_by_host) say_that_the_host_refused(run);
    if (is_part) run.part = part_name(*request_.steps);
    if (torch_) add_torch(*torch_, run.environment);
    add_doubts(run, traced_.doubts);
  }

  // What PyTorch then calls out of memory is nothing of the card's.
  void say_that_the_host_refused(ProgramRun& run) {
    if (run.status != records::Status::kOutOfMemory && run.status != records::Status::kCrashed)
      return;
    traced_.is_host_failure = true;
    run.status = records::Status::kCrashed;
    run.out_of_memory.reset();
    run.reason =
        "this machine refused the program memory that the card had (see `ulimit -v`), so its peak "
        "is unknown";
  }

  static void add_torch(const pytorch::TorchInUse& torch, nlohmann::json& environment) {
    environment["libtorch"] = torch.version;
    if (!torch.cuda.empty()) environment["libtorch_cuda"] = torch.cuda;
    if (!torch.git_version.empty()) environment["libtorch_git_version"] = torch.git_version;
  }

  const TraceRequest& request_;
  TracedProgram traced_;
  std::optional<pytorch::TorchInUse> torch_;  // nullopt: not known
  fs::path tracer_;
};

}  // namespace

TracedProgram trace_program(const TraceRequest& request) { return Tracing(request).run(); }

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
bool asked_for_more_before(const records::OutOfMemory& facts, const Peaks& peaks) {
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
  if (run.status != records::Status::kOutOfMemory || !run.out_of_memory || !run.emulation) return;
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

}  // namespace peakbench::programs
