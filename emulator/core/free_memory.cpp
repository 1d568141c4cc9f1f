#include "core/free_memory.h"

#include <cstdio>

#include "core/callers.h"
#include "core/places.h"
#include "core/python_place.h"
#include "core/pytorch.h"

namespace peakbench::emulator {
void free_memory_is_read(const char* function, const void* caller) {
  if (lies_in(caller, "libc10_cuda.so")) return;
  LedgerPlace place{};
  std::snprintf(place.function, sizeof place.function, "%s", function);
  place.kernel_launches = ledger().kernel_launches;
  find_python_place(place.place, sizeof place.place);
  enter_place(ledger().free_memory_reads, place);
}

void enter_out_of_memory(std::uint64_t bytes) {
  const Caller& caller = find_caller();
  LedgerPlace place{};
  std::snprintf(place.function, sizeof place.function, "%s",
                caller.operation[0] ? caller.operation : caller.function);
  place.largest_bytes = bytes;
  place.kernel_launches = ledger().kernel_launches;
  // Whoever waits for Python's lock here may be waited for with it: PyTorch's allocator asks with
  // its own lock held.
  if (holds_python()) find_python_place(place.place, sizeof place.place);
  enter_place(ledger().out_of_memory, place);
}

}  // namespace peakbench::emulator
