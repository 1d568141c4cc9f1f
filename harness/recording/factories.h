#pragma once

#include <string_view>

namespace peakbench::recording {

// Operators that only allocate memory for other operators. An allocation is named after the
// innermost operator that is no factory, or after the outermost if all are.
inline bool is_factory(std::string_view name) {
  for (const std::string_view prefix :
       {"aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::new_", "aten::resize",
        "aten::scalar_tensor", "aten::zero_", "aten::fill_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace peakbench::recording
