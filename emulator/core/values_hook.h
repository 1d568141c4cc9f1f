// Interface between the stub libraries and the library that computes values (values/). That library
// is loaded into programs with the PyTorch that it was compiled against. Plain C: each has its own
// C++ runtime.
#pragma once

#include <cstdint>

#define PEAKBENCH_VALUES_API __attribute__((visibility("default")))

extern "C" {
// What is known of the bytes that the host reads, or that leave for another rank. From known to
// substitute, the worse, the later.
enum PeakbenchStanding {
  kPeakbenchUnknown = 0,     // nothing is known; `to` is left alone
  kPeakbenchKnown = 1,       // `to` holds the value
  kPeakbenchFinite = 2,      // `to` holds a check for finite values, which they are taken to be
  kPeakbenchPartly = 3,      // some of the values in `to` are plausible ones
  kPeakbenchSubstitute = 4,  // `to` holds a plausible value in place of an unknown one
  kPeakbenchNotMine = 5,     // the reader knows nothing of them
};
// Answers a read of device memory by the host. `held`: what is known of what `to` holds already;
// where nothing is, it holds zeros. `kind` becomes a ReadKind (facts.h).
using PeakbenchReader = int (*)(std::uint64_t from, void* to, std::uint64_t bytes,
                                enum PeakbenchStanding held, int* kind);
// What the device was asked to run.
enum PeakbenchWork {
  kPeakbenchLibraryCall = 0,     // of a vendor's library, for its caller
  kPeakbenchBuiltInKernel = 1,   // a kernel that its library brings along
  kPeakbenchLoadedAtRunTime = 2  // a kernel of an image that was loaded at run time, or a graph
};
// Called for each launch or library call that would have made the device write memory. `words`:
// where it may have written, among them numbers that are no addresses; -1 of them: anywhere.
// `caller`: the code that launched; null if unknown.
using PeakbenchWorkListener = void (*)(const std::uint64_t* words, int count,
                                       enum PeakbenchWork work, const void* caller);

// Either may be null. Called with no lock held.
PEAKBENCH_VALUES_API void peakbench_emulator_listen(PeakbenchReader reader,
                                                    PeakbenchWorkListener listener);
// From now on, allocations of PyTorch's allocator are reported. Forgets what was kept before.
PEAKBENCH_VALUES_API void peakbench_emulator_watch_allocator(void);
PEAKBENCH_VALUES_API void peakbench_emulator_handed_out(std::uint64_t base, std::uint64_t bytes);
// From now on this is called for each piece that a memory pool allocates (cudaMallocAsync).
// PyTorch's allocator on pools does not report them. No lock of the stub libraries is held.
using PeakbenchPieceListener = void (*)(std::uint64_t base, std::uint64_t bytes);
PEAKBENCH_VALUES_API void peakbench_emulator_watch_pools(PeakbenchPieceListener listener);
// The host decides by unknown numbers that it read before, in its own memory. Adds an entry like a
// read, of this kind. Takes Python's lock: call with no lock held.
PEAKBENCH_VALUES_API void peakbench_emulator_decided(int kind, std::uint64_t bytes);
// An operator writes to the storage that begins there as to one of the card. A fault if it is
// page-locked memory of the host (cudaHostAlloc, mapped): no kernel runs, and later reads by the
// host are not seen. Call with none of the stub libraries' locks held.
PEAKBENCH_VALUES_API void peakbench_emulator_written(std::uint64_t base);
// The host reads a value that is one of several that PyTorch allows, as this operator leaves it
// open: a Fact::open_choice with the line that reads. Takes Python's lock:
// with no lock held.
PEAKBENCH_VALUES_API void peakbench_emulator_unspecified(const char* operation, const char* what);
// A kernel that this operator of PyTorch launches on this device checks what it is given, and finds
// it wrong (machine.h): a fault, with the line of the program. Of several, the first: a card runs
// nothing after it. Nothing happens while a graph is captured, which runs nothing. Takes Python's
// lock: with no lock held.
PEAKBENCH_VALUES_API void peakbench_emulator_assert_failed(int device, const char* operation,
                                                           const char* what);
// All that was asked of a stream up to a point in time.
struct PeakbenchIssued {
  std::uint64_t stream, number;
};
// The last copy to the host on the stream that the host does not wait for. Number 0 if `to` is no
// page-locked memory: that is written before the call returns.
PEAKBENCH_VALUES_API struct PeakbenchIssued peakbench_emulator_in_flight(std::uint64_t stream,
                                                                         const void* to);
// Whether the host has waited for it since, or has seen that it is done.
PEAKBENCH_VALUES_API int peakbench_emulator_is_done(struct PeakbenchIssued issued);
// Whether what is asked of the stream from now on comes after it.
PEAKBENCH_VALUES_API int peakbench_emulator_is_before(struct PeakbenchIssued issued,
                                                      std::uint64_t stream);
// PyTorch's counts of its memory on a device, for the ledger: the peaks since the last call.
PEAKBENCH_VALUES_API void peakbench_emulator_counted(int device, std::uint64_t peak_allocated_bytes,
                                                     std::uint64_t peak_reserved_bytes);
// How much of a device PyTorch's allocator has handed out now; asked with no lock held.
using PeakbenchAllocated = std::uint64_t (*)(int device);
// torch.backends.cudnn, as PyTorch chooses convolutions by it. 0: unknown.
using PeakbenchAskCudnn = int (*)(int* tf32, int* deterministic, int* benchmark);
// From now on these are called when a call has a workspace. Null: unknown.
PEAKBENCH_VALUES_API void peakbench_emulator_ask_pytorch(PeakbenchAllocated allocated,
                                                         PeakbenchAskCudnn settings);
// PyTorch's allocator ran out of memory with so much handed out and so much asked for, together.
PEAKBENCH_VALUES_API void peakbench_emulator_needed(int device, std::uint64_t bytes);
// The allocator gave up. Adds the program's line on this thread to the last refusal; the
// allocator's own lock did not allow it earlier. Takes Python's lock: call with no lock held.
PEAKBENCH_VALUES_API void peakbench_emulator_ran_out(void);

// Receives the bytes that are only plausible, from the first one on.
struct PeakbenchUnsure {
  void* into;
  void (*add)(void* into, std::uint64_t begin, std::uint64_t end);
};

// Bytes from another process of the program, produced when they are read.
struct PeakbenchArrival {
  void* token;
  // Waits for them, a bounded time, and writes them, unless it says kPeakbenchUnknown. From any
  // thread, once.
  int (*resolve)(void* token, void* to, const struct PeakbenchUnsure* unsure);
  void (*release)(void* token);  // the last call
};
// Requests of an exchange between processes to the library that computes values. Called with no
// lock held.
struct PeakbenchExchange {
  // The value of these bytes, as a PeakbenchStanding. `floating`: of floating-point numbers, which
  // are not worth computing where they are neither known nor a check for finite values.
  int (*take)(std::uint64_t from, std::uint64_t bytes, int floating, void* to,
              const struct PeakbenchUnsure* unsure);
  // 1: taken over. 0: these bytes are not a small tensor's.
  int (*expect)(std::uint64_t to, std::uint64_t bytes, const struct PeakbenchArrival* arrival);
  int (*move)(std::uint64_t to, std::uint64_t from, std::uint64_t bytes);
  void (*forget)(std::uint64_t to, std::uint64_t bytes);
};
PEAKBENCH_VALUES_API void peakbench_emulator_exchange(const struct PeakbenchExchange* exchange);
// How many captures of graphs are under way in the process.
PEAKBENCH_VALUES_API int peakbench_emulator_captures(void);
// Whether the card's tensor cores round float32 to TF32: from compute capability 8.0 on.
PEAKBENCH_VALUES_API int peakbench_emulator_has_tf32(void);
// A value could not be computed, although an operator has a kernel for it: a fault. Call with no
// lock of the stub libraries held.
PEAKBENCH_VALUES_API void peakbench_emulator_failed(const char* why);
// Says in the ledger that values are not computed after all.
PEAKBENCH_VALUES_API void peakbench_emulator_cannot_compute(const char* why);
// Records in the ledger that an integer without a known bound was made up.
PEAKBENCH_VALUES_API void peakbench_emulator_made_up_unbounded(void);
// The same of a number that the program is about to read: it weighs unless it is only logged.
PEAKBENCH_VALUES_API void peakbench_emulator_read_unbounded(void);
// How often this was called before from the line of the program that this thread is at. Takes
// Python's lock: with no lock held.
PEAKBENCH_VALUES_API std::uint64_t peakbench_emulator_reads_here(void);
// The library that computes values marks its own work on the calling thread: 1 begins, 0 ends. What
// it allocates on the host meanwhile is not the program's.
PEAKBENCH_VALUES_API void peakbench_emulator_own_work(int begins);
PEAKBENCH_VALUES_API int peakbench_emulator_is_own_work(void);
}

namespace peakbench::emulator {

// Larger tensors have no values: computing them on the CPU would take long.
inline constexpr std::uint64_t kLargestValue = 1 << 20;
// But for integers and truths that come of the host alone (labels, masks): sizes come of them.
inline constexpr std::uint64_t kLargestHostValue = 16 << 20;
// And bytes that are only copied, within the card or between ranks: pickled objects.
inline constexpr std::uint64_t kLargestCopied = 256 << 20;

// Environment of an emulated process: the library that computes values (or only listens to the
// allocator, without kComputeVariable=1), and the version of LibTorch that it is for.
inline constexpr const char* kValuesVariable = "PEAKBENCH_EMULATED_VALUES";
inline constexpr const char* kValuesVersionVariable = "PEAKBENCH_EMULATED_VALUES_LIBTORCH";
// Why the library is missing for the program's PyTorch; unset or empty if it is there.
inline constexpr const char* kValuesProblemVariable = "PEAKBENCH_EMULATED_VALUES_PROBLEM";
inline constexpr const char* kComputeVariable = "PEAKBENCH_EMULATED_COMPUTE";
// nonzero=all or nonzero=none: how many rows a size that rests on unknown values gets.
inline constexpr const char* kAssumeVariable = "PEAKBENCH_EMULATED_ASSUME";
// A number that selects the plausible values for unknown ones. 0, or not set: the usual ones.
inline constexpr const char* kGuessVariable = "PEAKBENCH_EMULATED_GUESS";

}  // namespace peakbench::emulator
