#pragma once

#include <cstddef>
#include <string>

#include "core/api.h"
#include "core/card.h"

namespace peakbench::emulator {

// The emulated machine: its cards, the calling thread's one, and the versions that it is for.

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
// The CUDA version that the program is built for, as 12040. If the launcher did not find it: the
// newest version that the stub libraries support.
PEAKBENCH_EMULATOR_API int cuda_version();
// The same for a library that one major version of CUDA alone has.
PEAKBENCH_EMULATOR_API int cuda_version(int major);
// Versions of the libraries that the program's PyTorch was released with: 90100 and 22105. From the
// launcher, otherwise from the package that the process has loaded. 0: unknown.
PEAKBENCH_EMULATOR_API int cudnn_version();
PEAKBENCH_EMULATOR_API int nccl_version();

// The limits of a device's context that a program may read and set: CUlimit, which the runtime
// calls cudaLimit.

// False where CUDA has no such limit.
PEAKBENCH_EMULATOR_API bool device_limit(int limit, std::size_t* out);
// Remembered for the process. What a raised limit takes of a real card's memory is not charged;
// the ledger names it as unmodelled.
PEAKBENCH_EMULATOR_API bool set_device_limit(int limit, std::size_t value);

// Checks of a kernel's arguments (a device-side assert). A failed check stops the card for the
// process. The next call that waits for it returns the error, and so does every later call that
// submits work or allocates memory.

// Whether one has failed there. The host waits for the device, or asks how far it is: from now on
// it knows.
PEAKBENCH_EMULATOR_API bool meets_device_assert(int device);
// Whether the host knows of one.
PEAKBENCH_EMULATOR_API bool is_stopped(int device);

// The PyTorch that this process has loaded.

// The path of a loaded library with this file name; empty if it is not loaded.
std::string loaded_library(const char* name);

// Whether code is of PyTorch's own libraries.
bool is_pytorchs(const void* code);

}  // namespace peakbench::emulator
