#include "host/values_library.h"

#include <fmt/format.h>

#include "files/file.h"
#include "pytorch/compiled_library.h"

namespace peakbench::emulator {

ValuesLibrary values_library_for(const std::optional<pytorch::TorchInUse>& torch,
                                 const Installation& installation,
                                 const std::function<bool()>& cancelled) {
  const pytorch::LibrarySources sources{
      .kind = "values",
      .folder = installation.folder / "values/source",
      .whole = "values/whole.cpp",
      .libraries = {"libc10.so", "libc10_cuda.so", "libtorch_cpu.so"}};
  if (!torch || torch->version == installation.libtorch_version ||
      !files::is_there((sources.folder / sources.whole).string()))
    return {installation.folder / "values/peakbench_values.so", installation.libtorch_version, ""};
  const auto library = pytorch::compiled_library(*torch, sources, cancelled);
  if (library.problem.empty()) return {library.path, torch->version, ""};
  return {{},
          torch->version,
          fmt::format("none are compiled for PyTorch {}: {}", torch->version, library.problem)};
}

}  // namespace peakbench::emulator
