#include "host/program_signals.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace peakbench::emulator {
namespace {

constexpr std::array kOurs{SIGINT, SIGQUIT, SIGTERM, SIGHUP};
constexpr std::size_t kFromTerminal = 2;  // the first of these

std::atomic<pid_t> program_of_ours{0};
std::atomic<int> first_signal{0};

// Only what is safe in a signal handler.
void pass_on_or_note(int signal) {
  int none = 0;
  if (const pid_t program = program_of_ours.load(); program > 0)
    kill(program, signal);
  else
    first_signal.compare_exchange_strong(none, signal);
}

struct sigaction doing(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;  // no SA_RESTART: waits return at once
  return action;
}

}  // namespace

ProgramSignals::ProgramSignals() {
  first_signal = 0;
  const auto note = doing(pass_on_or_note);
  for (std::size_t i = 0; i < kOurs.size(); ++i) {
    // nohup and background jobs of a shell start with the signal ignored; that stays so.
    sigaction(kOurs[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kOurs[i], &note, nullptr);
  }
}

ProgramSignals::~ProgramSignals() { restore(); }

int ProgramSignals::noted() const { return first_signal.load(); }

void ProgramSignals::pass_on_to(pid_t program) const {
  program_of_ours = program;
  const auto ignore = doing(SIG_IGN), pass_on = doing(pass_on_or_note);
  for (std::size_t i = 0; i < kOurs.size(); ++i)
    sigaction(kOurs[i], i < kFromTerminal ? &ignore : &pass_on, nullptr);
  if (const int signal = noted(); signal != 0) kill(program, signal);
}

void ProgramSignals::restore() const {
  program_of_ours = 0;
  for (std::size_t i = 0; i < kOurs.size(); ++i) sigaction(kOurs[i], &before_[i], nullptr);
}

}  // namespace peakbench::emulator
