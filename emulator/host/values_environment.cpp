#include "host/values_environment.h"

#include <fmt/format.h>

#include <string>

#include "core/values_hook.h"
#include "errors/errors.h"

namespace peakbench::emulator {
namespace {

void check_assumption(const ValuesRequest& request) {
  if (request.assume.empty()) return;
  if (request.assume != "nonzero=all" && request.assume != "nonzero=none")
    throw ConfigError(fmt::format(
        "--assume {}: expected nonzero=all or nonzero=none: how many rows an operator returns "
        "whose count depends on values that are not known",
        request.assume));
  if (!request.compute)
    throw ConfigError(
        "--assume and --no-compute: an assumption needs values to be followed; leave one out");
}

}  // namespace

process::Environment values_environment(const ValuesRequest& request,
                                        const Installation& installation,
                                        const std::optional<pytorch::TorchInUse>& torch,
                                        const std::function<bool()>& cancelled) {
  check_assumption(request);
  return values_environment(request, values_library_for(torch, installation, cancelled));
}

process::Environment values_environment(const ValuesRequest& request,
                                        const pytorch::LibraryInUse& library) {
  check_assumption(request);
  return {{kValuesVariable, library.path.string()},
          {kComputeVariable, request.compute ? "1" : "0"},
          {kValuesVersionVariable, library.torch_version},
          {kValuesProblemVariable, library.problem},
          {kAssumeVariable, request.assume},
          {kGuessVariable, std::to_string(request.guess)}};
}

}  // namespace peakbench::emulator
