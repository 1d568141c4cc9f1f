#include "launch/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace peakbench::launch {
namespace {

constexpr int kInterruptedExit = 130;
constexpr std::array<int, 4> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR2};

std::atomic<int> seen{0};
std::array<struct sigaction, kSignals.size()> before;
static_assert(std::atomic<int>::is_always_lock_free);

// Only what is safe in a signal handler.
void note(int signal) {
  int none = 0;
  if (seen.compare_exchange_strong(none, signal)) return;
  if (none == SIGUSR2) {  // a scheduler's warning; what follows it is the first to mean it
    seen = signal;
    return;
  }
  _exit(kInterruptedExit);
}

}  // namespace

InterruptScope::InterruptScope() {
  seen = 0;
  struct sigaction action {};
  action.sa_handler = note;  // no SA_RESTART: waits return at once
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    // nohup and background jobs of a shell start with the signal ignored; that stays so.
    sigaction(kSignals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before[i], nullptr);
  seen = 0;
}

bool interrupted() { return seen.load() > 0; }

void interrupt_as(int signal) {
  int none = 0;
  seen.compare_exchange_strong(none, signal);
}

int interrupted_by() { return seen.load(); }

void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

}  // namespace peakbench::launch
