// Threads that want Python's lock when the interpreter is being taken down. CPython before 3.14
// ends them with pthread_exit, which unwinds through noexcept functions of LibTorch:
// std::terminate. The thread of autograd may come that late where the program ends with a backward;
// on the emulated card, whose kernels take no time, it does so more often than on a real one.
// From 3.14 on, CPython lets them sleep until the process has ended (PyThread_hang_thread); so does
// this, for all.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include "interpreter/python_api.h"

extern "C" void pthread_exit(void* value) {
  if (peakbench::interpreter::python_is_ending())
    for (;;) pause();
  static const auto real =
      reinterpret_cast<decltype(&pthread_exit)>(dlsym(RTLD_NEXT, "pthread_exit"));
  real(value);
  __builtin_unreachable();
}
