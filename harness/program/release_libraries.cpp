#include "program/release_libraries.h"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "errors/errors.h"
#include "host/installation.h"
#include "host/values_library.h"
#include "launch/interrupt.h"
#include "program/traced.h"
#include "pytorch/library_in_use.h"

namespace peakbench::program {

namespace fs = std::filesystem;

constexpr unsigned kForAll = 0755;

fs::path make_release_libraries(const fs::path& torch, const fs::path& out) {
  const launch::InterruptScope interrupts;
  const std::function<bool()> cancelled = [] { return launch::interrupted(); };
  const auto found = pytorch::torch_in(torch);
  const auto name = pytorch::library_folder(found);
  if (name.empty())
    throw ConfigError(fmt::format("PyTorch {} in {} has no CUDA, or says no revision",
                                  found.version, torch.string()));
  const auto installation = emulator::find_installation();
  const auto values = emulator::values_library_for(found, installation, cancelled);
  if (!values.problem.empty()) throw ConfigError(values.problem);
  const auto tracer = tracer_for(found, tracer_places(installation), cancelled).library;
  fs::create_directories(out / name);
  const std::pair<fs::path, const char*> libraries[]{{values.path, "peakbench_values.so"},
                                                     {tracer.path, "peakbench_tracer.so"}};
  for (const auto& [library, file] : libraries) {
    const auto copy = out / name / file;
    fs::copy_file(library, copy, fs::copy_options::overwrite_existing);
    fs::permissions(copy, fs::perms(kForAll));  // the cache keeps them for one user alone
  }
  return out / name;
}

}  // namespace peakbench::program
