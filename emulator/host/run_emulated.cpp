#include "host/run_emulated.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/ledger_json.h"
#include "core/shared_cards.h"
#include "errors/errors.h"
#include "files/file.h"
#include "host/environment.h"
#include "host/for_program.h"
#include "host/process_report.h"
#include "host/program_file.h"
#include "host/torch_in_use.h"
#include "text/printable.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

// A folder for ledgers that goes away with its object.
class LedgerFolder {
 public:
  LedgerFolder() {
    std::error_code error;
    const char* given = std::getenv("TMPDIR");
    const fs::path folder =
        given && !*given ? fs::path("/tmp") : fs::temp_directory_path(error);  // empty: not set
    std::string pattern = (folder / "peakbench-emulate.XXXXXX").string();
    if (error || !mkdtemp(pattern.data())) {
      throw ConfigError(fmt::format(
          "cannot make a folder for the program's figures in {}: {}; set TMPDIR to a folder that "
          "you may write to",
          given && *given ? given : folder.string(),
          error ? error.message() : std::strerror(errno)));
    }
    path_ = pattern;
    if (!make_shared_cards(path_ / kSharedCardsFile))
      throw ConfigError(fmt::format("cannot write to {}: {}; set TMPDIR to a folder with room",
                                    folder.string(), std::strerror(errno)));
  }
  LedgerFolder(const LedgerFolder&) = delete;
  LedgerFolder& operator=(const LedgerFolder&) = delete;
  ~LedgerFolder() {
    std::error_code none;
    fs::remove_all(path_, none);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

constexpr int kCannotWrite = 2;
constexpr int kNotStarted = 126;

std::atomic<pid_t> running{0};  // for the signal handler

void pass_on(int signal) {
  if (const pid_t program = running.load(); program > 0) kill(program, signal);
}

// While it lives, signals meant for us reach the program. SIGINT from a terminal does so by itself.
class SignalsPassedOn {
 public:
  SignalsPassedOn() {
    struct sigaction action {};
    action.sa_handler = pass_on;
    sigaction(SIGTERM, &action, &before_[0]);
    sigaction(SIGHUP, &action, &before_[1]);
    action.sa_handler = SIG_IGN;
    sigaction(SIGINT, &action, &before_[2]);
    sigaction(SIGQUIT, &action, &before_[3]);
  }
  SignalsPassedOn(const SignalsPassedOn&) = delete;
  SignalsPassedOn& operator=(const SignalsPassedOn&) = delete;
  ~SignalsPassedOn() { restore(); }
  // In the program itself, before it starts.
  void restore() const {
    constexpr int kSignals[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};
    for (int i = 0; i < 4; ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  struct sigaction before_[4];
};

void set_environment(const Environment& environment) {
  for (const auto& [name, value] : environment) {
    // Which of several devices to use is the caller's to say.
    const char* given = name == "CUDA_VISIBLE_DEVICES" ? std::getenv(name.c_str()) : nullptr;
    if (!given || !*given) setenv(name.c_str(), value.c_str(), 1);
  }
}

[[noreturn]] void become(const std::vector<std::string>& command, const Environment& environment,
                         int problem) {
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

// A pipe that the program's start closes; what comes through is why there was none.
class StartProblem {
 public:
  StartProblem() {
    if (pipe2(ends_, O_CLOEXEC) != 0)
      throw ConfigError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  StartProblem(const StartProblem&) = delete;
  StartProblem& operator=(const StartProblem&) = delete;
  ~StartProblem() {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  int writing_end() const { return ends_[1]; }
  // 0 where the program started. Waits for that.
  int error() {
    close(std::exchange(ends_[1], -1));
    int error = 0;
    while (read(ends_[0], &error, sizeof error) < 0 && errno == EINTR) {
    }
    return error;
  }

 private:
  int ends_[2] = {-1, -1};
};

std::string not_started(const std::string& program, int error) {
  const std::string hint =
      error == EACCES
          ? ". Make it executable (chmod +x), or name the program that runs it (python3)"
      : error == ENOEXEC ? ". It is no program: name the one that runs it (python3, sh)"
                         : "";
  return fmt::format("{} was not started: {}{}", program, std::strerror(error), hint);
}

int run_program(const std::vector<std::string>& command, const Environment& environment) {
  const SignalsPassedOn signals;
  StartProblem problem;
  const pid_t program = fork();
  if (program < 0)
    throw ConfigError(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
  if (program == 0) {
    signals.restore();
    signal(SIGXFSZ, SIG_DFL);  // ignored in peakbench itself
    become(command, environment, problem.writing_end());
  }
  running = program;
  const int error = problem.error();
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  if (error) throw ConfigError(not_started(command[0], error));
  return status;
}

bool is_running(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  // "4711 (python3) S 1 ...": the name may hold anything.
  const auto name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] != 'Z' && text[name_end + 2] != 'X';
}

// The ranks that a program started may still be on their way out when it has ended itself.
std::vector<std::unique_ptr<Ledger>> read_ledgers_at_end(const fs::path& folder) {
  using namespace std::chrono_literals;
  const auto began = std::chrono::steady_clock::now();
  for (bool told = false;; std::this_thread::sleep_for(20ms)) {
    auto ledgers = read_ledgers(folder);
    const auto left = std::ranges::find_if(
        ledgers, [](const auto& one) { return !one->finished && is_running(one->pid); });
    const auto waited = std::chrono::steady_clock::now() - began;
    if (left == ledgers.end() || waited > 5s) return ledgers;
    if (!told && waited > 1s) {
      told = true;
      std::fprintf(stderr, "peakbench: waiting for process %d, which the program left running\n",
                   (*left)->pid);
    }
  }
}

int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

nlohmann::json torch_json(const std::optional<TorchInUse>& torch) {
  if (!torch) return nullptr;
  return {{"version", torch->version}, {"cuda", torch->cuda}, {"folder", torch->folder.string()}};
}

// Those that were used: each card's own peak, over all processes.
nlohmann::json cards_json(const Card& card, const std::vector<std::uint64_t>& peaks) {
  nlohmann::json cards = nlohmann::json::array();
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    if (peaks[i])
      cards.push_back({{"index", i},
                       {"total_bytes", card.facts.total_memory_bytes},
                       {"peak_used_bytes", peaks[i]}});
  }
  return cards;
}

void write_json(const EmulateRequest& request, const Card& card,
                const std::optional<TorchInUse>& torch, const std::vector<const Ledger*>& ledgers,
                const std::vector<std::uint64_t>& card_peaks, const Verdict& verdict,
                int wait_status) {
  nlohmann::json processes = nlohmann::json::array();
  for (const Ledger* ledger : ledgers) processes.push_back(to_json(*ledger));
  const nlohmann::json document = {{"emulated", true},
                                   {"card", card.spec},
                                   {"card_name", card.facts.name},
                                   {"card_memory_bytes", card.facts.total_memory_bytes},
                                   {"context_set_aside_bytes", card.facts.context_bytes},
                                   {"context_memory", to_json(card.context_memory)},
                                   {"command", request.command},
                                   {"torch", torch_json(torch)},
                                   {"exit_code", exit_code(wait_status)},
                                   {"processes", processes},
                                   {"cards", cards_json(card, card_peaks)},
                                   {"verdict", to_json(verdict)}};
  files::write_json_file(request.json_path, document);
}

// Before an hour of somebody's program, not after it.
void check_writable(const std::string& path) {
  if (path.empty()) return;
  if (const auto what = files::why_no_file(path); what == "a folder")
    throw ConfigError(fmt::format("--json {}: is {}; name a file", path, what));
  if (!files::why_no_file(path).empty()) return;  // a device, a pipe: opened once, to be written
  if (!std::ofstream(path, std::ios::app))
    throw ConfigError(fmt::format("--json {}: cannot be written: {}", path, std::strerror(errno)));
}

void check_program(const std::vector<std::string>& command) {
  if (command.empty())
    throw ConfigError(
        "no program to run; expected: peakbench emulate --card h100-80gb -- python3 train.py");
  const auto program = find_program(command[0]);
  if (!program) throw ConfigError(fmt::format("{}: no such program", command[0]));
  if (const auto reason = why_not_emulated(*program)) throw ConfigError(*reason);
}

}  // namespace

int run_emulated(const EmulateRequest& request) {
  check_program(request.command);
  check_writable(request.json_path);
  const Installation found = find_installation();
  const auto torch = torch_of_command(request.command);
  if (torch)
    if (const auto reason = why_torch_cannot_work(*torch, found)) throw ConfigError(*reason);
  const Installation installation = for_program(found, torch);
  const Card card = parse_card(request.card, installation);
  const LedgerFolder folder;
  Environment environment = emulation_environment(card, installation, folder.path());
  for (auto& variable : values_environment(request.values, found, torch))
    environment.push_back(std::move(variable));
  const int status = run_program(request.command, environment);
  const auto owned = read_ledgers_at_end(folder.path());
  std::vector<const Ledger*> ledgers;
  for (const auto& ledger : owned) ledgers.push_back(ledger.get());
  const Verdict verdict = judge(
      ledgers, {status, request.values.assume, card.facts.late_streams, card.facts.context_bytes});
  const auto card_peaks = read_card_peaks(folder.path());
  const auto table =
      emulation_table(card, ledgers, card_peaks, installation.cuda_majors, verdict, status);
  if (torch) {
    const auto line = fmt::format("\nPyTorch {}, in {}", torch->version, torch->folder.string());
    std::fputs(escaped_controls(line).c_str(), stderr);
  }
  std::fputs(escaped_controls(table).c_str(), stderr);
  // Said, and no reason to hide how the program ended; of one that ended well, it is the end.
  if (!request.json_path.empty()) try {
      write_json(request, card, torch, ledgers, card_peaks, verdict, status);
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "peakbench: %s\n", escaped_controls(error.what()).c_str());
      return exit_code(status) == 0 ? kCannotWrite : exit_code(status);
    }
  return exit_code(status);
}

}  // namespace peakbench::emulator
