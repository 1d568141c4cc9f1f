// The state of an emulated process, shared by all stub libraries: devices and their charged memory,
// the address space, copies, streams and events, and the ledger. Every function may be called from
// any thread.
//
// Each library contains its own C++ runtime: no library may free what another has allocated.
#pragma once

#include "core/api.h"
#include "core/copies.h"
#include "core/machine.h"
#include "core/memory.h"
#include "core/own_ledger.h"
#include "core/streams.h"

#define PEAKBENCH_ENTRY extern "C" __attribute__((visibility("default")))
// Another name of an entry point of the same source.
#define PEAKBENCH_ALSO(name, entry) \
  PEAKBENCH_ENTRY __attribute__((alias(#entry))) decltype(entry) name

// The code that called an entry point, and the stream that it named.
#define PEAKBENCH_CALL(...) \
  CopyCall { __builtin_return_address(0) __VA_OPT__(, number(__VA_ARGS__)) }

namespace peakbench::emulator {

inline std::uint64_t number(const void* handle) { return reinterpret_cast<std::uint64_t>(handle); }
inline bool is_device(int device) { return device >= 0 && device < device_count(); }

}  // namespace peakbench::emulator

extern "C" {
// For generated stubs.
PEAKBENCH_EMULATOR_API void peakbench_emulator_refuse(const char* name);
PEAKBENCH_EMULATOR_API void peakbench_emulator_no_workspace(const char* function);
PEAKBENCH_EMULATOR_API void peakbench_emulator_work(void);
PEAKBENCH_EMULATOR_API int peakbench_emulator_give_handle(void** out);
// For the process itself (dlsym): its ledger, a peakbench::emulator::Ledger of this very build; and
// the same as JSON, valid until the calling thread asks again.
PEAKBENCH_EMULATOR_API const void* peakbench_emulator_ledger(void);
PEAKBENCH_EMULATOR_API const char* peakbench_emulator_report(void);
// nvidia-smi says how much memory is free, or in use.
PEAKBENCH_EMULATOR_API void peakbench_emulator_says_free_memory(const char* function);
// 1 where this process has used CUDA, which its forks then cannot.
PEAKBENCH_EMULATOR_API int peakbench_emulator_in_use(void);
}
