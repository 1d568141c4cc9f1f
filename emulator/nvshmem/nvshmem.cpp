// NVSHMEM is refused (entry_points.txt); what answers with an address answers with none.
#include "core/entry.h"

using peakbench::emulator::refuse;

namespace {

void* refused(const char* name) {
  refuse(name);
  return nullptr;
}

}  // namespace

PEAKBENCH_ENTRY void* nvshmem_malloc(unsigned long) { return refused("nvshmem_malloc"); }
PEAKBENCH_ENTRY void* nvshmem_ptr(const void*, int) { return refused("nvshmem_ptr"); }
PEAKBENCH_ENTRY void* nvshmemx_mc_ptr(int, const void*) { return refused("nvshmemx_mc_ptr"); }

// No function: the vendor's device code reads here how cards reach each other.
extern "C" {
__attribute__((visibility("default"))) int nvshmem_selected_device_transport = 0;
}
