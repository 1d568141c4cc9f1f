#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/api.h"
#include "core/ledger.h"
#include "core/values_hook.h"

namespace peakbench::emulator {

// The ledger of this process, and what enters it.

PEAKBENCH_EMULATOR_API Ledger& ledger();
inline void add(std::uint64_t& counter, std::uint64_t value) {
  std::atomic_ref(counter).fetch_add(value, std::memory_order_relaxed);
}
inline void add_one(std::uint64_t& counter) { add(counter, 1); }
// `caller`: the code that launches it. `words`: all that could be addresses in the kernel's
// arguments; null where these are unknown.
PEAKBENCH_EMULATOR_API void count_launch(std::uint64_t stream, PeakbenchWork work,
                                         const void* caller,
                                         const std::vector<std::uint64_t>* words = nullptr);
PEAKBENCH_EMULATOR_API void count_graph_launch();
// A library's call that would have made the device write memory.
PEAKBENCH_EMULATOR_API void count_device_work();
// What an entry has to name; see Fact.
struct FactDetails {
  const char* function = "";
  const char* what = "";
  const char* place = "";
  int rank = 0, ranks = 0;
};
// The same entry counts its calls. What was refused and faults are named once on stderr, too.
PEAKBENCH_EMULATOR_API void enter(Fact kind, const FactDetails& details = {});
// An entry point that is not emulated was called.
PEAKBENCH_EMULATOR_API void refuse(const char* name);
// A workspace counts as none, held while the call runs that asks for it now: the ledger keeps how
// much was allocated meanwhile. With no lock held.
PEAKBENCH_EMULATOR_API void missing_workspace(Workspace kind, const char* function = "");
// The same of a convolution's workspace, which counts as `bytes`.
struct WorkspaceRange {
  std::uint64_t bytes = 0, least_bytes = 0, most_bytes = 0;
};
PEAKBENCH_EMULATOR_API void convolution_workspace(const WorkspaceRange& range);
// How PyTorch chooses convolutions now; empty: unknown.
struct CudnnSettings {
  bool tf32, deterministic, benchmark;
};
PEAKBENCH_EMULATOR_API std::optional<CudnnSettings> cudnn_settings();

// Entering a place of the program into the ledger.

enum class PythonsLock { may_be_waited_for, is_held_or_not };

// The current source line, if Python runs on this thread. With the second argument, only if this
// thread already holds Python's lock: waiting for it here could deadlock.
LedgerPlace place_now(const char* function, PythonsLock lock);

// The row of the same function and place counts another call; the largest bytes stay.
void enter_place(LedgerPlaces& places, const LedgerPlace& place);

// The entry made last has its line, if it has none: the calling thread's line now.
void complete_last_place(LedgerPlaces& places);

// Where a program learns how much memory the card has left: it asks, or it is refused some. What it
// then does depends on the CUDA context, which is in no figure.

// The program asked, by this function. `caller` is the code that did: what PyTorch's allocator asks
// for its messages decides nothing. Call with no lock held.
PEAKBENCH_EMULATOR_API void free_memory_is_read(const char* function, const void* caller);

// An allocation was refused. Call without the mutex; an allocator may hold a lock of its own.
void enter_out_of_memory(std::uint64_t bytes);

}  // namespace peakbench::emulator

// The rank of this process, from the first of these that is known:
//
//   torch.distributed's default process group   reported by the tracer
//   the largest communicator of NCCL            per device: ranks may be threads of one process
//   RANK and WORLD_SIZE                         of the environment, when the card is first used

extern "C" {
// The default process group of torch.distributed: from now on all devices of the process are this
// rank's.
PEAKBENCH_EMULATOR_API void peakbench_emulator_is_rank(int rank, int ranks);
// The other ranks of torch.distributed do not exist, and are taken to be like this one.
PEAKBENCH_EMULATOR_API void peakbench_emulator_is_alone(int rank, int ranks);
}

namespace peakbench::emulator {

struct Ledger;

// A number in the environment; `otherwise` if it is not set.
std::int32_t from_environment(const char* variable, std::int32_t otherwise);
// Into a ledger that begins.
void enter_rank(Ledger& ledger);
// A device takes part in a communicator.
PEAKBENCH_EMULATOR_API void enter_communicator_rank(int device, int rank, int ranks);

}  // namespace peakbench::emulator
