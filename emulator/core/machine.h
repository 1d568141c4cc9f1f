// The emulated machine: its cards, the calling thread's one, and the versions that it is for.
#pragma once

#include "core/api.h"
#include "core/card.h"

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

}  // namespace peakbench::emulator
