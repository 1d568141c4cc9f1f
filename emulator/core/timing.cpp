#include "core/timing.h"

#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "core/exchange.h"
#include "core/late_streams.h"
#include "core/own_ledger.h"
#include "core/state.h"
#include "interpreter/python_api.h"

namespace peakbench::emulator {
namespace {

enum class Library { other, allocator, kernels };

Library find_library(const void* code) {
  Dl_info found{};
  if (!dladdr(code, &found) || !found.dli_fname) return Library::other;
  const char* slash = std::strrchr(found.dli_fname, '/');
  const char* name = slash ? slash + 1 : found.dli_fname;
  if (std::strcmp(name, "libtorch_cuda.so") == 0) return Library::kernels;
  if (std::strcmp(name, "libc10_cuda.so") != 0) return Library::other;
  // torch.Event, which is of any device.
  const bool any_device = found.dli_sname && std::strstr(found.dli_sname, "GuardImpl");
  return any_device ? Library::other : Library::allocator;
}

// An allocator asks again and again from one place.
Library library_of(const void* code) {
  thread_local const void* last = nullptr;
  thread_local Library library = Library::other;
  if (last != code) library = find_library(code);
  last = code;
  return library;
}

enum class Asker { program, allocator, pinned_allocator_or_watchdog };

// What of PyTorch asks by itself does so without Python's lock; Work.is_completed() holds it.
Asker asker(const void* caller) {
  const auto library = library_of(caller);
  if (library == Library::allocator) return Asker::allocator;
  const bool is_programs = library == Library::other || interpreter::holds_python();
  return is_programs ? Asker::program : Asker::pinned_allocator_or_watchdog;
}

void program_asked(LedgerPlaces& places, const char* function) {
  enter_place(places, place_now(function, PythonsLock::is_held_or_not));
}

bool ends_work(std::uint64_t event) {
  auto [s, lock] = LockedState{};
  const auto found = s.queues.events.find(event);
  return found != s.queues.events.end() && found->second.ends_work;
}

}  // namespace

bool answer_event_query(std::uint64_t event, const char* function, const void* caller) {
  const bool certain = is_event_certain(event);
  const bool done = is_event_done(event);
  if (certain) return done;
  switch (asker(caller)) {
    case Asker::program:
      program_asked(ledger().done_reads, function);
      if (done) told_of_event(event);
      break;
    case Asker::allocator:
      add_one(ledger().blocks_in_question);
      break;
    case Asker::pinned_allocator_or_watchdog:
      if (!ends_work(event) && ledger().pinned_bytes) add_one(ledger().pinned_in_question);
      break;
  }
  return done;
}

bool answer_stream_query(std::uint64_t stream, const char* function, const void* caller) {
  const bool certain = is_stream_certain(stream);
  const bool done = is_stream_done(stream);
  // No allocator asks for a stream: CUDAStream::query, which does, is in the library of one.
  if (!certain && asker(caller) != Asker::pinned_allocator_or_watchdog) {
    program_asked(ledger().done_reads, function);
    if (done) told_of_stream(stream);
  }
  return done;
}

float answer_elapsed_time(const char* function, const void* caller) {
  if (asker(caller) == Asker::program) program_asked(ledger().elapsed_reads, function);
  enter(Fact::elapsed_time);
  return 1000;
}

void card_is_profiled() { program_asked(ledger().profiles, "torch.profiler"); }

}  // namespace peakbench::emulator
