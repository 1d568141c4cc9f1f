// The processes that descend from one, while others come and go.
#include "host/process_tree.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace peakbench::process {
namespace {

using Clock = std::chrono::steady_clock;

// A process of which some 30 children are always about to end.
class Churn {
 public:
  Churn() : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int started = 0;; ++started) {
      if (fork() == 0) _exit(0);
      if (started > 30) waitpid(-1, nullptr, 0);
    }
  }
  ~Churn() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// A worker's supervisor looked, threw, and took its worker with it.
TEST(ProcessTree, WhatEndsWhileItIsReadIsNoError) {
  const Churn churn;
  ASSERT_GT(churn.pid(), 0);
  const auto end = Clock::now() + std::chrono::seconds(2);
  while (Clock::now() < end) {
    const auto found = descendants_of(getpid());
    EXPECT_NE(std::ranges::find(found, churn.pid()), found.end());
  }
}

}  // namespace
}  // namespace peakbench::process
