#include "emulator/host/emulated_program.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "emulator/host/environment.h"
#include "emulator/host/installation.h"
#include "host/command.h"
#include "host/process.h"
#include "host/torch_in_use.h"

namespace peakbench::emulator {
namespace {

void check_program(const std::vector<std::string>& command) {
  if (command.empty())
    throw ConfigError(
        "no program to run; expected: peakbench emulate --card h100-80gb -- python3 train.py");
  const auto program = process::find_program(command[0]);
  if (!program) throw ConfigError(fmt::format("{}: no such program", command[0]));
  if (const auto reason = pytorch::why_not_preloaded(*program)) throw ConfigError(*reason);
}

void append(process::Environment& environment, process::Environment more) {
  for (auto& variable : more) environment.push_back(std::move(variable));
}

}  // namespace

std::optional<PreparedCommand> prepare(const EmulatedCommand& command,
                                       const std::filesystem::path& folder, bool limited,
                                       const std::function<bool()>& cancelled) {
  check_program(command.command);
  const Installation found = find_installation();
  const auto torch = pytorch::torch_of_command(command.command, cancelled);
  if (cancelled()) return std::nullopt;
  if (torch)
    if (const auto reason = why_torch_cannot_work(*torch, found)) throw ConfigError(*reason);
  const Installation installation = for_program(found, torch);
  Card card = parse_card(command.card, installation);
  if (!limited) take_limit_away(card);
  auto runs = environments_of_runs(command.world, card.facts.count);
  PreparedCommand prepared{torch, installation, card,
                           emulation_environment(card, installation, folder), std::move(runs)};
  append(prepared.environment, values_environment(command.values, found, torch, cancelled));
  if (command.more_environment) try {
      append(prepared.environment, command.more_environment({torch, folder, cancelled}));
    } catch (const ConfigError&) {
      if (!cancelled()) throw;
    }
  if (cancelled()) return std::nullopt;
  return prepared;
}

namespace {

constexpr int kNotStarted = 126;

void set_environment(const process::Environment& environment) {
  for (const auto& [name, value] : environment) {
    // Which of several devices to use is the caller's to say.
    const char* given = name == "CUDA_VISIBLE_DEVICES" ? std::getenv(name.c_str()) : nullptr;
    if (!given || !*given) setenv(name.c_str(), value.c_str(), 1);
  }
}

[[noreturn]] void become(const std::vector<std::string>& command,
                         const process::Environment& environment, int problem) {
  set_environment(environment);
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);  // ignored by us alone
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  [[maybe_unused]] const auto written = write(problem, &error, sizeof error);
  _exit(kNotStarted);
}

// 0 where the program started. Waits for that.
int error_of(process::Pipe& start) {
  start.write.reset();
  int error = 0;
  while (read(start.read.get(), &error, sizeof error) < 0 && errno == EINTR) {
  }
  return error;
}

std::string not_started(const std::string& program, int error) {
  const std::string hint =
      error == EACCES
          ? ". Make it executable (chmod +x), or name the program that runs it (python3)"
      : error == ENOEXEC ? ". It is no program: name the one that runs it (python3, sh)"
                         : "";
  return fmt::format("{} was not started: {}{}", program, std::strerror(error), hint);
}

int run_once(const std::vector<std::string>& command, const process::Environment& environment,
             const ProgramSignals& signals, ProgramOutput output) {
  // The program's start closes it; what comes through is why there was none.
  process::Pipe problem;
  if (!problem.open())
    throw ConfigError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const pid_t program = fork();
  if (program < 0)
    throw ConfigError(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
  if (program == 0) {
    signals.restore();
    if (output == ProgramOutput::kToStandardError) dup2(STDERR_FILENO, STDOUT_FILENO);
    become(command, environment, problem.write.get());
  }
  signals.pass_on_to(program);
  const int error = error_of(problem);
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR)
    signals.pass_on_to_descendants(program);
  if (error) throw ConfigError(not_started(command[0], error));
  return status;
}

process::Environment joined(process::Environment environment, const process::Environment& more) {
  append(environment, more);
  return environment;
}

}  // namespace

int run_program(const std::vector<std::string>& command, const process::Environment& environment,
                const ProgramSignals& signals, ProgramOutput output,
                const std::vector<process::Environment>& runs) {
  int status = 0;
  for (const auto& run : runs) {
    status = run_once(command, joined(environment, run), signals, output);
    if (status != 0 || signals.came_for_program() != 0) break;
  }
  return status;
}

process::ProcessEnd run_unattended(const std::vector<std::string>& command,
                                   const PreparedCommand& prepared,
                                   const std::filesystem::path& log, std::chrono::seconds limit,
                                   const std::function<bool()>& cancelled) {
  process::ProcessSpec spec;
  spec.arguments = command;
  spec.arguments[0] = process::find_program(command[0])->string();
  const char* devices = std::getenv("CUDA_VISIBLE_DEVICES");  // as in run_program
  spec.log_path = log.string();
  spec.timeout = limit;
  process::ProcessEnd end;
  for (const auto& run : prepared.runs) {
    spec.environment = joined(prepared.environment, run);
    if (devices && *devices)
      std::erase_if(spec.environment,
                    [](const auto& variable) { return variable.first == "CUDA_VISIBLE_DEVICES"; });
    end = process::run_process(
        spec, [](const std::string&) {}, cancelled);
    if (!end.start_error.empty() || end.stopped != process::Stop::kNone || end.exit_code != 0 ||
        end.signal != 0)
      break;
  }
  return end;
}

}  // namespace peakbench::emulator
