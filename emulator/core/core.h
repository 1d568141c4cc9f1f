// The one state of an emulated process, shared by all stand-in libraries: devices and what is
// charged to them, the address space, copies, streams and events, and the ledger. Everything here
// may be called from any thread.
//
// Each library has a C++ runtime of its own inside: nothing that one of them allocates is freed by
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/card.h"
#include "core/ledger.h"

#define PEAKBENCH_EMULATOR_API __attribute__((visibility("default")))

namespace peakbench::emulator {

enum class MachineState {
  ready,
  no_card,  // none was given to this process (or one that cannot be understood): CUDA says "no
            // device"
  forked,   // a child of a process that had used CUDA before it forked: CUDA says "initialization
            // error"
};
PEAKBENCH_EMULATOR_API MachineState machine_state();
PEAKBENCH_EMULATOR_API const CardFacts& card();
// The CUDA version that the driver is for, 0 without a card.
PEAKBENCH_EMULATOR_API int driver_cuda_version();
// Number of devices, 0 unless ready.
PEAKBENCH_EMULATOR_API int device_count();
// The calling thread's device.
PEAKBENCH_EMULATOR_API int current_device();
PEAKBENCH_EMULATOR_API void set_current_device(int device);
// Called when a program asks for its devices: PyTorch, if this process has it, is loaded by then.
PEAKBENCH_EMULATOR_API void find_pytorch();
// 16 bytes that tell one emulated device from another, the same in every process.
PEAKBENCH_EMULATOR_API void device_uuid(int device, unsigned char* out);
// The CUDA version that the program is built for, as 12040; where the launcher did not find out,
// the newest that the stand-ins are made for.
PEAKBENCH_EMULATOR_API int cuda_version();
// The same for a library that one major version of CUDA alone has.
PEAKBENCH_EMULATOR_API int cuda_version(int major);
// Of the libraries that the program's PyTorch is released with, 90100 and 22105: as the launcher
// found out, otherwise as the package says that the process has loaded. 0: not known.
PEAKBENCH_EMULATOR_API int cudnn_version();
PEAKBENCH_EMULATOR_API int nccl_version();

inline constexpr std::uint64_t kPage = 2ull << 20;  // device memory is handed out in these
inline constexpr std::uint64_t kKeptBytes = kPage;  // allocations up to this keep real bytes

enum class MemoryResult { ok, out_of_memory, invalid_value, no_address_space };

enum class MemoryKind {
  unknown,      // not CUDA's: ordinary host memory
  device,       // cudaMalloc
  reservation,  // cuMemAddressReserve, nothing mapped there
  mapping,      // cuMemMap
  pinned,       // cudaHostAlloc
  registered,   // cudaHostRegister
  managed,      // cudaMallocManaged
};

struct MemoryPlace {
  MemoryKind kind;
  int device;  // -1 for the host's
  std::uint64_t base;
  std::uint64_t bytes;
  std::uint64_t handle;   // of a mapping
  std::uint64_t ordinal;  // unique in the process
};

PEAKBENCH_EMULATOR_API MemoryResult allocate_device(int device, std::uint64_t bytes, void** out);
PEAKBENCH_EMULATOR_API MemoryResult allocate_managed(int device, std::uint64_t bytes, void** out);
PEAKBENCH_EMULATOR_API MemoryResult allocate_pinned(std::uint64_t bytes, void** out);
PEAKBENCH_EMULATOR_API MemoryResult register_host(void* base, std::uint64_t bytes);
PEAKBENCH_EMULATOR_API MemoryResult unregister_host(void* base);
// Frees what one of the three allocate functions gave; `pinned` says which of the two families is
// meant.
PEAKBENCH_EMULATOR_API MemoryResult release(void* base, bool pinned);
// What is at an address; kind unknown where CUDA knows of nothing.
PEAKBENCH_EMULATOR_API MemoryPlace find_place(const void* address);
PEAKBENCH_EMULATOR_API void memory_info(int device, std::uint64_t* free_bytes,
                                        std::uint64_t* total_bytes);
PEAKBENCH_EMULATOR_API std::uint64_t peak_used_bytes(int device);

// Virtual memory management: addresses and memory apart.
PEAKBENCH_EMULATOR_API MemoryResult reserve_addresses(std::uint64_t bytes, std::uint64_t alignment,
                                                      std::uint64_t* out);
PEAKBENCH_EMULATOR_API MemoryResult free_addresses(std::uint64_t base, std::uint64_t bytes);
PEAKBENCH_EMULATOR_API MemoryResult create_memory(int device, std::uint64_t bytes,
                                                  std::uint64_t* handle);
PEAKBENCH_EMULATOR_API MemoryResult retain_memory(std::uint64_t handle);
PEAKBENCH_EMULATOR_API MemoryResult release_memory(std::uint64_t handle);
PEAKBENCH_EMULATOR_API MemoryResult memory_of_handle(std::uint64_t handle, int* device,
                                                     std::uint64_t* bytes);
PEAKBENCH_EMULATOR_API MemoryResult map_memory(std::uint64_t base, std::uint64_t bytes,
                                               std::uint64_t offset, std::uint64_t handle);
PEAKBENCH_EMULATOR_API MemoryResult unmap_memory(std::uint64_t base, std::uint64_t bytes);

// Copies whatever is on either side: bytes are kept in small device allocations and on the host.
// Reading device memory to the host enters the ledger with its caller; what no copy had put there
// reads as zeros.
PEAKBENCH_EMULATOR_API MemoryResult copy_bytes(void* to, const void* from, std::uint64_t bytes);
// Rows of `width` bytes, `height` of them, each side with its own distance between rows.
PEAKBENCH_EMULATOR_API MemoryResult copy_rows(void* to, std::uint64_t to_pitch, const void* from,
                                              std::uint64_t from_pitch, std::uint64_t width,
                                              std::uint64_t height);
// `count` elements of `element_bytes` (1, 2 or 4).
PEAKBENCH_EMULATOR_API MemoryResult fill_bytes(void* to, std::uint32_t value,
                                               unsigned element_bytes, std::uint64_t count);

// Handles are numbers in an address range of their own, in the order of creation. 0, 1 and 2 are
// CUDA's default streams.
PEAKBENCH_EMULATOR_API std::uint64_t create_stream(int priority, unsigned flags);
PEAKBENCH_EMULATOR_API bool destroy_stream(std::uint64_t stream);
PEAKBENCH_EMULATOR_API bool stream_exists(std::uint64_t stream);
PEAKBENCH_EMULATOR_API int stream_priority(std::uint64_t stream);
PEAKBENCH_EMULATOR_API unsigned stream_flags(std::uint64_t stream);
PEAKBENCH_EMULATOR_API int stream_device(std::uint64_t stream);
PEAKBENCH_EMULATOR_API std::uint64_t create_event();
PEAKBENCH_EMULATOR_API bool destroy_event(std::uint64_t event);
PEAKBENCH_EMULATOR_API bool event_exists(std::uint64_t event);
PEAKBENCH_EMULATOR_API bool record_event(std::uint64_t event, std::uint64_t stream);
// What lies between any two events, in milliseconds: programs divide by it and repeat until a time
// is reached (autotuning), so it is positive, and long. It is entered as unmodelled.
PEAKBENCH_EMULATOR_API float event_distance();
PEAKBENCH_EMULATOR_API bool wait_event(std::uint64_t stream, std::uint64_t event);

// Graph capture: launches are counted instead of run, which is all that a graph is here.
PEAKBENCH_EMULATOR_API bool begin_capture(std::uint64_t stream);
// The capture's id, 0 when the stream is not capturing.
PEAKBENCH_EMULATOR_API std::uint64_t capture_of(std::uint64_t stream);
PEAKBENCH_EMULATOR_API std::uint64_t capture_graph(std::uint64_t stream);
// The graph's handle, 0 when the stream was not capturing.
PEAKBENCH_EMULATOR_API std::uint64_t end_capture(std::uint64_t stream);
PEAKBENCH_EMULATOR_API std::uint64_t graph_nodes(std::uint64_t graph);

// A fresh opaque handle in the same range, for everything else that only needs to be told apart.
PEAKBENCH_EMULATOR_API void* new_handle();

PEAKBENCH_EMULATOR_API Ledger& ledger();
PEAKBENCH_EMULATOR_API void count_launch(std::uint64_t stream);
// Of a kernel whose arguments are known: `words` are all that could be addresses in them.
PEAKBENCH_EMULATOR_API void count_launch(std::uint64_t stream,
                                         const std::vector<std::uint64_t>& words);
PEAKBENCH_EMULATOR_API void count_graph_launch();
// A library's call that would have made the device write memory.
PEAKBENCH_EMULATOR_API void count_device_work();
PEAKBENCH_EMULATOR_API void count_device_work(const std::vector<std::uint64_t>& words);
// An entry point that is not emulated was called: recorded, and named once on stderr.
PEAKBENCH_EMULATOR_API void refuse(const char* name);
// Something that is wrong in the program, or would make its figures wrong: recorded, and named once
// on stderr.
PEAKBENCH_EMULATOR_API void fault(const char* what);
// A figure that the vendor's library decides was answered without a model of it.
PEAKBENCH_EMULATOR_API void unmodelled(const char* what);

}  // namespace peakbench::emulator

extern "C" {
// For generated stubs.
PEAKBENCH_EMULATOR_API void peakbench_emulator_refuse(const char* name);
PEAKBENCH_EMULATOR_API void peakbench_emulator_unmodelled(const char* what);
PEAKBENCH_EMULATOR_API void peakbench_emulator_work(void);
// For the process itself (dlsym): the ledger as JSON; valid until the calling thread asks again.
PEAKBENCH_EMULATOR_API const char* peakbench_emulator_report(void);
// 1 where this process has used CUDA, which its forks then cannot.
PEAKBENCH_EMULATOR_API int peakbench_emulator_in_use(void);
}
