#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/api.h"

namespace peakbench::emulator {

// What machine code for a card (a cubin) says of its kernels: their parameters, registers and
// memory. `cuobjdump -elf` and `cuobjdump -res-usage` print the same.

// Bytes of each parameter of a kernel, in order.
using ParameterSizes = std::vector<std::uint32_t>;

struct KernelFacts {
  ParameterSizes parameters;
  int registers = 0;  // of a thread; 0: the image does not say
  std::uint32_t static_shared_bytes = 0;
  std::uint32_t local_bytes = 0;  // of a thread: its stack, spilled registers included
  int max_threads = 0;            // of a block, by __launch_bounds__; 0: as the card allows
  int barriers = 0;
  int arch = 0;  // that the code is for: 86 for sm_86
};

using Kernels = std::map<std::string, KernelFacts>;

// The kernels, by name, of a cubin: an ELF file for NVIDIA's machines. Empty for an image of
// another kind and for an inconsistent one. `image` has no size, as in the driver's own call: only
// what its header covers is read.
Kernels kernels_of_cubin(const void* image);

// Whatever could be an address in the arguments of a launch: it tells which memory the kernel can
// write.
PEAKBENCH_EMULATOR_API std::vector<std::uint64_t> words_of(const ParameterSizes& sizes,
                                                           void* const* arguments);

// Fat binaries: what nvcc puts the code of a source file into, for several kinds of card. NVIDIA
// does not document the format; tests compare what is read here with what ptxas says when it
// compiles.

bool is_fat_binary(const void* image);

// The unpacked cubin that a card of this compute capability runs. Empty if there is only PTX, for
// example, which the driver compiles.
std::string code_for(const void* fat_binary, int major, int minor);

}  // namespace peakbench::emulator
