// What is not to be left half done.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace peakbench::files {

// While it lives, signals that end the process wait: until a file has its name, or what was begun
// is taken away. For moments.
class SignalsWait {
 public:
  SignalsWait() {
    sigset_t these;
    sigemptyset(&these);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&these, number);
    pthread_sigmask(SIG_BLOCK, &these, &before_);
  }
  ~SignalsWait() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

}  // namespace peakbench::files
