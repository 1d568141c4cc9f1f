#include "program/trace_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "errors/errors.h"
#include "host/card_use.h"
#include "host/installation.h"
#include "host/out_of_memory.h"
#include "host/program_signals.h"
#include "host/run_emulated.h"
#include "host/run_program.h"
#include "process/exit_code.h"
#include "process/find_program.h"
#include "pytorch/torch_in_use.h"
#include "result/device.h"

namespace peakbench::program {
namespace {

namespace fs = std::filesystem;

// Once the program is at its end.
struct Ended {
  std::string device;  // of the case; empty: the one that most was traced of
  HowItEnded how;
  std::optional<result::Emulation> emulation;
  bool is_refused_by_host = false;  // memory that the emulated card had
  std::vector<Untraced> users;      // processes that used the device, with a journal or without
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
      ended = Ended{.device = request_.device.empty() ? result::emulated_device(program.card.spec)
                                                      : request_.device,
                    .how = {process::exit_code(program.wait_status), program.interrupted},
                    .emulation = result::Emulation{},
                    .is_refused_by_host = std::ranges::any_of(emulator::card_uses(program.ledgers),
                                                              emulator::is_refused_by_host),
                    .users = uses_of(program)};
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
    auto users = watch.found(request_.journals);
    std::ranges::copy(forked_untraced(request_.journals), std::back_inserter(users));
    finish({.device = request_.device,
            .how = {code, signals.came_for_program()},
            .emulation = std::nullopt,
            .is_refused_by_host = false,
            .users = users});
    return code;
  }

  void finish(const Ended& ended) {
    auto recorded = read_journals(request_.journals, {.device = ended.device,
                                                      .emulated = ended.emulation.has_value(),
                                                      .has_times = !ended.emulation,
                                                      .failed = ended.how.exit_code != 0});
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
    if (run.status != result::Status::kOutOfMemory && run.status != result::Status::kCrashed)
      return;
    traced_.is_host_failure = true;
    run.status = result::Status::kCrashed;
    run.out_of_memory.reset();
    run.reason =
        "this machine refused the program memory that the card had (see `ulimit -v`): what it "
        "takes is not known";
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

}  // namespace peakbench::program
