#include "device/cuda/workspaces.h"

#include <c10/core/Allocator.h>
#include <dlfcn.h>

#include <map>
#include <tuple>

namespace peakbench::device {
namespace {

// By handle and stream. PyTorch's tables begin with this map (WorkspaceMapWithMutex in
// ATen/cuda/CUDAContextLight.h); that header asks for cuBLAS's, which are not here, and a release
// that has no such table has no such function.
using Workspaces = std::map<std::tuple<void*, void*>, c10::DataPtr>;

void visit_table(const char* function, const char* library, const Tracing::VisitWorkspace& visit) {
  auto* const found = ::dlsym(RTLD_DEFAULT, function);
  if (found == nullptr) return;
  for (const auto& [owner, memory] : reinterpret_cast<Workspaces& (*)()>(found)())
    if (memory) visit(reinterpret_cast<std::uint64_t>(memory.get()), library);
}

}  // namespace

void visit_kept_workspaces(const Tracing::VisitWorkspace& visit) {
  visit_table("_ZN2at4cuda33cublas_handle_stream_to_workspaceEv", "cuBLAS", visit);
  visit_table("_ZN2at4cuda35cublaslt_handle_stream_to_workspaceEv", "cuBLASLt", visit);
}

}  // namespace peakbench::device
