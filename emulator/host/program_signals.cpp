#include "emulator/host/program_signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>

#include "host/process.h"
#include "host/process_tree.h"

namespace peakbench::emulator {
namespace {

constexpr std::array kOurs{SIGINT, SIGQUIT, SIGTERM, SIGHUP};

std::atomic<pid_t> program_of_ours{0};
std::atomic<int> first_signal{0}, first_of_program{0}, for_descendants{0};

bool is_from_terminal(int signal, const siginfo_t* info) {
  return (signal == SIGINT || signal == SIGQUIT) && info->si_code == SI_KERNEL;
}

// Only what is safe in a signal handler.
void pass_on_or_note(int signal, siginfo_t* info, void*) {
  int none = 0;
  const pid_t program = program_of_ours.load();
  if (program <= 0) {
    first_signal.compare_exchange_strong(none, signal);
    return;
  }
  first_of_program.compare_exchange_strong(none, signal);
  if (is_from_terminal(signal, info)) return;
  kill(program, signal);
  if (signal == SIGINT || signal == SIGQUIT) for_descendants = signal;
}

}  // namespace

ProgramSignals::ProgramSignals() {
  first_signal = first_of_program = for_descendants = 0;
  struct sigaction note {};
  note.sa_sigaction = pass_on_or_note;
  note.sa_flags = SA_SIGINFO;  // no SA_RESTART: waits return at once
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
  if (const int signal = noted(); signal != 0) kill(program, signal);
}

void ProgramSignals::pass_on_to_descendants(pid_t program) const {
  const int signal = for_descendants.exchange(0);
  if (signal == 0) return;
  // As a terminal does: those of our own group, and not what has gone its own way.
  for (const pid_t process : process::descendants_of(program))
    if (getpgid(process) == getpgrp()) kill(process, signal);
}

int ProgramSignals::came_for_program() const { return first_of_program.load(); }

int ended_before_the_program(int signal) {
  std::fprintf(stderr, "peakbench: interrupted before the program was started\n");
  return process::ended_by(signal);
}

void ProgramSignals::restore() const {
  program_of_ours = 0;
  for (std::size_t i = 0; i < kOurs.size(); ++i) sigaction(kOurs[i], &before_[i], nullptr);
}

}  // namespace peakbench::emulator
