#include "host/values_environment.h"

#include <fmt/format.h>

#include "core/values_hook.h"
#include "errors/errors.h"

namespace peakbench::emulator {
namespace {

constexpr const char* kLibrary = "values/peakbench_values.so";

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

Environment values_environment(const ValuesRequest& request, const Installation& installation) {
  check_assumption(request);
  const auto library = (installation.folder / kLibrary).string();
  return {{kValuesVariable, library},
          {kComputeVariable, request.compute ? "1" : "0"},
          {kValuesVersionVariable, installation.libtorch_version},
          {kAssumeVariable, request.assume}};
}

}  // namespace peakbench::emulator
