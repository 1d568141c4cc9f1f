#include "host/values_library.h"

#include <fmt/format.h>

#include "files/file.h"
#include "pytorch/compiled_library.h"

namespace peakbench::emulator {
namespace {

namespace fs = std::filesystem;

// Of the worker for this very version that lies beside the emulated card, as in a wheel.
fs::path carried_for(const std::string& version, const Installation& installation) {
  const auto prefix = installation.folder.parent_path().parent_path().parent_path();
  return prefix / "workers" / ("torch-" + version) / "lib/peakbench/values/peakbench_values.so";
}

}  // namespace

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
  if (const auto carried = carried_for(torch->version, installation);
      files::is_there(carried.string()))
    return {carried, torch->version, ""};
  const auto library = pytorch::compiled_library(*torch, sources, cancelled);
  if (library.problem.empty()) return {library.path, torch->version, ""};
  return {{},
          torch->version,
          fmt::format("none are compiled for PyTorch {}: {}", torch->version, library.problem)};
}

}  // namespace peakbench::emulator
