#pragma once

#include <mutex>
#include <unordered_map>
#include <utility>

#include "core/api.h"
#include "core/core.h"

// For stub libraries without vendor headers: they exchange only handles and numbers.

namespace peakbench::emulator {

// Every one of the vendors' libraries says success with zero.
inline constexpr int kSuccess = 0;

// Returned if an entry point has no place for its result. The libraries use other numbers for that;
// none of them is success.
inline constexpr int kNowhere = 3;

// Answers an "create" entry point.
inline int give_handle(void** out) {
  if (!out) return kNowhere;
  *out = new_handle();
  return kSuccess;
}

// What a library keeps of each handle that it gave out. Never destroyed: other threads may outlive
// the end of the process.
template <typename Record>
class Handles {
 public:
  // `unknown`: the library's status for a handle that was never given out.
  explicit Handles(int unknown) : unknown_(unknown) {}

  int create(void** out, Record record = {}) {
    if (const int status = give_handle(out); status != kSuccess) return status;
    set(*out, std::move(record));
    return kSuccess;
  }
  void set(void* handle, Record record) {
    const std::lock_guard lock(mutex_);
    known_[handle] = std::move(record);
  }
  int destroy(void* handle) {
    const std::lock_guard lock(mutex_);
    return known_.erase(handle) ? kSuccess : unknown_;
  }
  // Calls `work` with the handle's record.
  template <typename Work>
  int with(void* handle, Work&& work) {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(handle);
    if (found == known_.end()) return unknown_;
    work(found->second);
    return kSuccess;
  }

 private:
  const int unknown_;
  std::mutex mutex_;
  std::unordered_map<void*, Record> known_;
};

// The text of a status. Programs only print it; it is never null.
inline const char* status_text(int status, const char* error) {
  return status == kSuccess ? "success" : error;
}

template <typename Value>
int give(Value* out, Value value) {
  if (out) *out = value;
  return kSuccess;
}

}  // namespace peakbench::emulator

// Workspaces that the program passes to the vendors' libraries, reported to a listener that
// distinguishes them from other memory. (PyTorch from 2.15 on passes one for each call, and keeps
// no table of them.)

extern "C" {
// Called for each workspace, with the name of the library, during the program's call. Runs on the
// calling thread; no lock of the stub libraries is held.
using PeakbenchWorkspaceListener = void (*)(const void* address, const char* library);
// Sets the listener. Null: none.
PEAKBENCH_EMULATOR_API void peakbench_emulator_watch_workspaces(
    PeakbenchWorkspaceListener listener);
}

namespace peakbench::emulator {

// A library was given this memory; null: none.
PEAKBENCH_EMULATOR_API void tell_of_workspace(const void* address, const char* library);

}  // namespace peakbench::emulator
