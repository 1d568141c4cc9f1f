#include "manifest/problems.h"

#include <algorithm>

#include "result/nearest.h"

namespace peakbench::manifest {

void Problems::check_keys(const result::Fields& fields, const std::vector<std::string>& known) {
  for (const auto& key : fields.keys()) {
    if (std::ranges::count(known, key) != 0) continue;
    add(result::FieldError(fields.pointer(key), "unknown key" + suggestion(key, known)).what());
  }
}

}  // namespace peakbench::manifest
