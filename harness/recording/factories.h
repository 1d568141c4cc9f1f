#pragma once

#include <string_view>

namespace peakbench::recording {

// Operators that only make memory for another one: an allocation is named after the innermost
// operator that is none of them, and after the outermost where all are.
inline bool is_factory(std::string_view name) {
  for (const std::string_view prefix :
       {"aten::empty", "aten::zeros", "aten::ones", "aten::full", "aten::new_", "aten::resize",
        "aten::scalar_tensor", "aten::zero_", "aten::fill_"})
    if (name.starts_with(prefix)) return true;
  return false;
}

}  // namespace peakbench::recording
