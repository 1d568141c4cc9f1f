#include "host/run_emulated.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/ledger_json.h"
#include "errors/errors.h"
#include "files/file.h"
#include "host/environment.h"
#include "host/process_report.h"
#include "host/program_file.h"
#include "text/printable.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

// A folder for ledgers that goes away with its object.
class LedgerFolder {
 public:
  LedgerFolder() {
    std::error_code error;
    const auto folder = fs::temp_directory_path(error);
    std::string pattern = (folder / "peakbench-emulate.XXXXXX").string();
    if (error || !mkdtemp(pattern.data())) {
      const char* given = std::getenv("TMPDIR");
      throw ConfigError(fmt::format(
          "cannot make a folder for the program's figures in {}: {}; set TMPDIR to a folder that "
          "you "
          "may write to",
          given ? given : folder.string(), error ? error.message() : std::strerror(errno)));
    }
    path_ = pattern;
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

[[noreturn]] void become(const std::vector<std::string>& command, const Environment& environment) {
  set_environment(environment);
  for (const int number : {SIGPIPE, SIGXFSZ}) signal(number, SIG_DFL);  // ignored by us alone
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int error = errno;
  std::fprintf(stderr, "error: %s: %s\n", printable(command[0]).c_str(), std::strerror(error));
  errno = error;
  _exit(errno == ENOENT ? 127 : 126);
}

int run_program(const std::vector<std::string>& command, const Environment& environment) {
  const SignalsPassedOn signals;
  const pid_t program = fork();
  if (program < 0)
    throw ConfigError(fmt::format("cannot start {}: {}", command[0], std::strerror(errno)));
  if (program == 0) {
    signals.restore();
    signal(SIGXFSZ, SIG_DFL);  // ignored in peakbench itself
    become(command, environment);
  }
  running = program;
  int status = 0;
  while (waitpid(program, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  return status;
}

int exit_code(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void write_json(const EmulateRequest& request, const Card& card,
                const std::vector<const Ledger*>& ledgers, int wait_status) {
  nlohmann::json processes = nlohmann::json::array();
  for (const Ledger* ledger : ledgers) processes.push_back(to_json(*ledger));
  const nlohmann::json document = {{"emulated", true},
                                   {"card", card.spec},
                                   {"card_name", card.facts.name},
                                   {"card_memory_bytes", card.facts.total_memory_bytes},
                                   {"command", request.command},
                                   {"exit_code", exit_code(wait_status)},
                                   {"processes", processes}};
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
  const Installation installation = find_installation();
  const Card card = parse_card(request.card, installation);
  const LedgerFolder folder;
  const int status =
      run_program(request.command, emulation_environment(card, installation, folder.path()));
  const auto owned = read_ledgers(folder.path());
  std::vector<const Ledger*> ledgers;
  for (const auto& ledger : owned) ledgers.push_back(ledger.get());
  const auto table = emulation_table(card, ledgers, installation.libtorch_version, status);
  std::fputs(escaped_controls(table).c_str(), stderr);
  // Said, and no reason to hide how the program ended; of one that ended well, it is the end.
  if (!request.json_path.empty()) try {
      write_json(request, card, ledgers, status);
    } catch (const ConfigError& error) {
      std::fprintf(stderr, "peakbench: %s\n", escaped_controls(error.what()).c_str());
      return exit_code(status) == 0 ? kCannotWrite : exit_code(status);
    }
  return exit_code(status);
}

}  // namespace peakbench::emulator
