#include "core/free_memory.h"

#include "core/callers.h"
#include "core/own_ledger.h"
#include "core/places.h"
#include "core/symbols.h"

namespace peakbench::emulator {

void free_memory_is_read(const char* function, const void* caller) {
  if (lies_in(caller, "libc10_cuda.so")) return;
  enter_place(ledger().free_memory_reads, place_now(function, PythonsLock::may_be_waited_for));
}

void enter_out_of_memory(std::uint64_t bytes) {
  const Caller& caller = find_caller();
  // PyTorch's allocator asks with its own lock held.
  auto place = place_now(caller.operation[0] ? caller.operation : caller.function,
                         PythonsLock::is_held_or_not);
  place.largest_bytes = bytes;
  enter_place(ledger().out_of_memory, place);
}

}  // namespace peakbench::emulator

extern "C" void peakbench_emulator_says_free_memory(const char* function) {
  using namespace peakbench::emulator;
  if (machine_state() == MachineState::ready) free_memory_is_read(function, nullptr);
}
