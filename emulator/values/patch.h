#pragma once

#include <ATen/core/ivalue.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/values_hook.h"
#include "values/value.h"

namespace peakbench::values {

// Values composed of other values, and bytes sent by another process of the program, which are
// waited for when they are read.

class Arrival {
 public:
  Arrival(const PeakbenchArrival& from, std::size_t bytes);
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  ~Arrival();

  bool is_here() const { return here_; }
  // Waits for the bytes. With no lock held: other threads may have to run before they arrive.
  void wait();
  // Waits unless they are here. What they are: where that is kPeakbenchUnknown, zeros.
  int write(char* to);
  // Which of them rest on substitutes, once they are here.
  const Ranges& unsure() const { return unsure_; }

 private:
  PeakbenchArrival from_;
  std::mutex mutex_;
  std::string bytes_;
  Ranges unsure_;
  int standing_ = kPeakbenchUnknown;
  std::atomic<bool> here_{false};
};

// `ranges` without the bytes from `begin` to `end`.
Ranges without(const Ranges& ranges, std::size_t begin, std::size_t end);
// New memory.
ValuePtr untouched(std::size_t bytes);

// Whether a value needs what has not arrived yet.
bool waits(const ValuePtr& value);
// Waits for all that it needs, with no lock held: computing it afterwards does not wait.
void settle(const ValuePtr& value);
// Computes bytes of a value: kPeakbenchKnown or kPeakbenchSubstitute, or kPeakbenchUnknown if the
// host has too little memory. Reports choices that PyTorch leaves open and that the bytes depend
// on. Call with no lock held.
int read_bytes(const ValuePtr& value, std::size_t offset, std::size_t bytes, void* to);

// Bytes of the patched value that depend on substitutes, if its inputs are computed. Without an
// arrival's.
Ranges unsure_after(const Patch& patch);
// The storage's value with bytes of it replaced; `patch.before` is filled in. Call with the lock.
void put_patch(std::uint64_t base, std::size_t storage_bytes, Patch patch);

// Values that go to other processes of the program and come from them: the emulated NCCL asks.

// The storages of a collective's tensors, while PyTorch's operator for it runs on this thread: NCCL
// only receives addresses.
void begin_collective(c10::ArrayRef<const c10::IValue> arguments);
void end_collective();
// New memory, which the collective may use on its way.
void add_to_collective(const at::Tensor& tensor);

void answer_exchange();

}  // namespace peakbench::values
