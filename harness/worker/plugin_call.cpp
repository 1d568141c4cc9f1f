#include "worker/plugin_call.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <system_error>

#include "base/host_memory.h"
#include "records/job.h"
#include "worker/progress.h"

namespace peakbench::worker {
namespace {

std::terminate_handler terminate_before = nullptr;

[[noreturn]] void on_terminate() {
  try {
    if (const auto current = std::current_exception()) std::rethrow_exception(current);
  } catch (const std::exception& error) {
    if (const auto reason = host_failure(error); !reason.empty()) end_as_host_failure(reason);
  } catch (...) {
  }
  if (terminate_before != nullptr) terminate_before();
  std::abort();
}

// LibTorch has no type of its own for it: c10/core/impl/alloc_cpu.cpp.
bool is_refused_allocation(const c10::Error& error) {
  return error.msg().find("DefaultCPUAllocator: can't allocate memory") != std::string::npos;
}

template <class... Types>
bool is_any(const std::exception& error) {
  return ((dynamic_cast<const Types*>(&error) != nullptr) || ...);
}

}  // namespace

std::string host_failure(const std::exception& error) {
  if (dynamic_cast<const HostError*>(&error) != nullptr) return error.what();
  if (dynamic_cast<const std::bad_array_new_length*>(&error) != nullptr) return "";
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return no_memory_text(0);
  if (const auto* of_torch = dynamic_cast<const c10::Error*>(&error))
    return is_refused_allocation(*of_torch) ? no_memory_text(0) : "";
  if (const auto* of_system = dynamic_cast<const std::system_error*>(&error)) {
    const auto& category = of_system->code().category();
    const bool number = category == std::generic_category() || category == std::system_category();
    if (number && is_host_error(of_system->code().value()))
      return of_system->what() + host_advice(of_system->code().value());
  }
  return "";
}

void refuse(const Owner& owner, const std::string& what) {
  throw PluginError(owner.path + ": " + owner.id + " " + what);
}

bool passes(const std::exception& error) {
  return is_any<PluginFailure, PluginError, Unsupported, OptionError, c10::OutOfMemoryError>(
             error) ||
         !host_failure(error).empty();
}

void end_as_host_failure(const std::string& reason) {
  std::fprintf(stderr, "%s\n", reason.c_str());
  try {
    report_host_failure(reason);
  } catch (const std::bad_alloc&) {
    report_host_failure_without_memory();
  }
  std::fflush(nullptr);
  std::_Exit(records::kHostFailureExit);
}

void prepare_for_host_failures() {
  std::signal(SIGXFSZ, SIG_IGN);
  terminate_before = std::set_terminate(on_terminate);
}

namespace {

thread_local Call current;

}  // namespace

Call current_call() { return current; }
const Owner* current_owner() { return current.owner; }

CurrentCall::CurrentCall(const Owner& owner, const char* call)
    : previous_(std::exchange(current, Call{&owner, call})) {}
CurrentCall::~CurrentCall() { current = previous_; }

}  // namespace peakbench::worker
