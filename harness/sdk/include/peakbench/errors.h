// What a plugin may throw, by who must act. The worker catches these in one place.
#pragma once

#include <stdexcept>

namespace peakbench {

// This strategy cannot work with this model, device or option value. The case's outcome is
// `unsupported` and the message, a sentence for people, its reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option's value is wrong in a way only the plugin can know (a file that is missing, a tensor of
// another shape).
struct OptionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace peakbench
