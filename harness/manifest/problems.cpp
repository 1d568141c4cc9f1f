#include "manifest/problems.h"

#include <algorithm>

#include "text/nearest.h"

namespace peakbench::manifest {

void Problems::check_keys(const Fields& fields, const std::vector<std::string>& known) {
  for (const auto& key : fields.keys()) {
    if (std::ranges::count(known, key) != 0) continue;
    add(FieldError(fields.pointer(key), "unknown key" + suggestion(key, known)).what());
  }
}

}  // namespace peakbench::manifest
