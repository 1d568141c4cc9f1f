#include "core/kernels.h"

#include "core/core.h"
#include "core/fat_binary.h"

namespace peakbench::emulator {
namespace {

Kernels kernels_in(const void* image) {
  if (!image || !is_fat_binary(image)) return kernels_of_cubin(image);
  const std::string code = code_for(image, card().major, card().minor);
  return code.empty() ? Kernels{} : kernels_of_cubin(code.data());
}

}  // namespace

const Kernels* read_kernels(const void* image) { return new Kernels(kernels_in(image)); }

void forget_kernels(const Kernels* kernels) { delete kernels; }

}  // namespace peakbench::emulator
