#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/errors.h"
#include "peakbench/errors.h"

namespace peakbench::worker {

// Failures of the machine, as opposed to failures of the case or of a plugin.

// Why the machine is to blame, and what to do; empty where it is not. The machine's are: HostError,
// memory that it did not give, and the system's errors that say something of it (a full disk, no
// more threads).
std::string host_failure(const std::exception& error);

// Reports to the process that started this worker, and ends; needs neither disk nor much memory.
[[noreturn]] void end_as_host_failure(const std::string& reason);

// From now on, reaching a file size limit is an error of the write. If an exception of the machine
// ends a library's thread, the worker ends as above.
void prepare_for_host_failures();

// A part of a stack that did nothing: its case must not pass for one that used it.

// The case's outcome is `no_effect`; the message names the part.
struct NoEffect : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Calls into plugins. Every call from the worker into a plugin's code is made here, so that a
// failure is reported with the plugin and the call.

// Whose code is called: the library and the id in it.
struct Owner {
  std::string path, id;
};

// Throws the PluginError of an owner: "PATH: ID WHAT".
[[noreturn]] void refuse(const Owner& owner, const std::string& what);

// What a plugin's code threw, and where it was called. The innermost call is the one named; where
// it failed on what another plugin had given it, the giver (counting.h). Without an owner: what
// LibTorch threw where no plugin's code ran, although a plugin was around it.
class PluginFailure : public std::runtime_error {
 public:
  PluginFailure(Owner owner, std::string call, const std::string& what)
      : std::runtime_error(what), owner_(std::move(owner)), call_(std::move(call)) {}
  const Owner& owner() const { return owner_; }
  const std::string& call() const { return call_; }

 private:
  Owner owner_;
  std::string call_;
};

// Whose code this thread is in, and in which call of it; null outside of all. To be read in a
// signal handler as well.
struct Call {
  const Owner* owner = nullptr;
  const char* name = "";
};
Call current_call();
const Owner* current_owner();

class CurrentCall {
 public:
  CurrentCall(const Owner& owner, const char* call);
  ~CurrentCall();
  CurrentCall(const CurrentCall&) = delete;
  CurrentCall& operator=(const CurrentCall&) = delete;

 private:
  Call previous_;
};

// What says something of the case (Unsupported, OptionError, OutOfMemoryError) or of the machine,
// or names the plugin already.
bool passes(const std::exception& error);

// Runs `function`, which calls `call` of `owner`. What it throws becomes a PluginFailure, but for
// what passes.
template <typename Function>
auto call_plugin(const Owner& owner, const char* call, Function&& function) {
  const CurrentCall current(owner, call);
  try {
    return function();
  } catch (const std::exception& error) {
    if (passes(error)) throw;
    const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
    throw PluginFailure(owner, call, of_torch ? of_torch->what_without_backtrace() : error.what());
  } catch (...) {
    throw PluginFailure(owner, call, "something that is no std::exception");
  }
}

}  // namespace peakbench::worker
