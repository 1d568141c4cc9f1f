#include "host/values_library.h"

#include <fmt/format.h>

namespace peakbench::emulator {

pytorch::LibraryInUse values_library_for(const std::optional<pytorch::TorchInUse>& torch,
                                         const Installation& installation,
                                         const std::function<bool()>& cancelled) {
  const auto& folder = installation.folder;
  const pytorch::LibraryBuilds builds{
      .built = folder / "values/peakbench_values.so",
      .built_for = installation.libtorch_version,
      .workers = folder.parent_path().parent_path().parent_path() / "workers",
      .in_worker = "lib/peakbench/values/peakbench_values.so",
      .libraries = folder.parent_path().parent_path().parent_path() / "libraries",
      .sources = {.kind = "values",
                  .folder = folder / "values/source",
                  .whole = "values/whole.cpp",
                  .libraries = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so"}}};
  auto library = pytorch::library_for(torch, builds, cancelled);
  if (!library.problem.empty())
    library.problem =
        fmt::format("none are compiled for PyTorch {}: {}", library.torch_version, library.problem);
  return library;
}

}  // namespace peakbench::emulator
