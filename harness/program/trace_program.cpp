#include "program/trace_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "errors/errors.h"
#include "host/card_use.h"
#include "host/installation.h"
#include "host/program_signals.h"
#include "host/run_emulated.h"
#include "host/run_program.h"
#include "process/exit_code.h"
#include "process/find_program.h"
#include "pytorch/torch_in_use.h"
#include "result/device.h"

namespace peakbench::program {
namespace {

class Tracing {
 public:
  explicit Tracing(const TraceRequest& request) : request_(request) {}

  TracedProgram run() {
    traced_.exit_code = request_.card.empty() ? run_here() : run_on_emulated_card();
    return std::move(traced_);
  }

 private:
  process::Environment environment(const std::optional<pytorch::TorchInUse>& torch, bool emulated) {
    const auto found = emulator::find_installation();
    const auto tracer = tracer_for(torch, found.libtorch_version, found.folder.parent_path());
    if (!tracer.problem.empty()) throw ConfigError(tracer.problem);
    torch_ = torch;
    return tracing_environment(
        tracer, {.journals = request_.journals, .cpu = !emulated, .times = !emulated});
  }

  int run_on_emulated_card() {
    emulator::EmulateRequest emulated;
    emulated.card = request_.card;
    emulated.command = request_.command;
    emulated.values = request_.values;
    emulated.look = request_.look;
    emulated.quiet = request_.quiet;
    emulated.more_environment = [this](const auto& torch) { return environment(torch, true); };
    emulated.afterwards = [this](const emulator::EmulatedProgram& program) {
      result::Emulation emulation;
      emulation.card = program.card.spec;
      emulation.verdict = program.verdict;
      const auto device =
          request_.device.empty() ? result::emulated_device(program.card.spec) : request_.device;
      finish(device, process::exit_code(program.wait_status), emulation, uses_of(program));
    };
    return emulator::run_emulated(emulated);
  }

  // By process: what the card gave it.
  static std::vector<Untraced> uses_of(const emulator::EmulatedProgram& program) {
    std::vector<Untraced> uses;
    for (const auto& use : emulator::card_uses(program.ledgers))
      uses.push_back({use.process->pid, static_cast<std::int64_t>(use.figures().peak_used_bytes)});
    return uses;
  }

  int run_here() {
    const auto& command = request_.command;
    if (!process::find_program(command[0]))
      throw ConfigError(fmt::format("{}: no such program", command[0]));
    const emulator::ProgramSignals signals;
    const auto torch = pytorch::torch_of_command(command, [&] { return signals.noted() != 0; });
    const auto more = environment(torch, false);
    const int code = process::exit_code(emulator::run_program(command, more, signals));
    finish(request_.device, code, std::nullopt, {});
    return code;
  }

  void finish(const std::string& device, int code,
              const std::optional<result::Emulation>& emulation, std::vector<Untraced> users) {
    auto journals = read_journals(request_.journals, {.device = device,
                                                      .emulated = emulation.has_value(),
                                                      .has_times = !emulation,
                                                      .failed = code != 0});
    std::erase_if(users, [&](const Untraced& user) {
      return user.used_bytes == 0 || std::ranges::any_of(journals, [&](const Journal& journal) {
               return journal.pid == user.pid;
             });
    });
    traced_.doubts = doubts_of(journals, users);
    auto& run = traced_.run.emplace(run_of(std::move(journals), request_.command, device, code));
    run.emulation = emulation;
    if (torch_) add_torch(*torch_, run.environment);
    add_doubts(run, traced_.doubts);
  }

  static void add_torch(const pytorch::TorchInUse& torch, nlohmann::json& environment) {
    environment["libtorch"] = torch.version;
    if (!torch.cuda.empty()) environment["libtorch_cuda"] = torch.cuda;
    if (!torch.git_version.empty()) environment["libtorch_git_version"] = torch.git_version;
  }

  const TraceRequest& request_;
  TracedProgram traced_;
  std::optional<pytorch::TorchInUse> torch_;  // nullopt: not known
};

}  // namespace

TracedProgram trace_program(const TraceRequest& request) { return Tracing(request).run(); }

}  // namespace peakbench::program
