// The parameters of kernels that are compiled at run time, read from the image they are loaded
// from: what a launch is given tells which memory the kernel can write.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace peakbench::emulator::driver {

// Bytes of each parameter, in order.
using ParameterSizes = std::vector<std::uint32_t>;

// Of each kernel of a cubin (an ELF file for NVIDIA's machines), by name: what its section
// .nv.info.KERNEL says (EIATTR_KPARAM_INFO; `cuobjdump -elf` prints them). Empty for an image of
// another kind (a fat binary, PTX) and for one that contradicts itself. `image` has no size, as in
// the driver's own call: only what its header says lies in it is read.
std::map<std::string, ParameterSizes> kernels_in(const void* image);

// Whatever could be an address in the arguments of a launch.
std::vector<std::uint64_t> words_of(const ParameterSizes& sizes, void* const* arguments);

}  // namespace peakbench::emulator::driver
