// Exceptions that a plugin may throw, classified by who must act. The worker catches them in one
// location.
#pragma once

#include <stdexcept>

namespace peakbench {

// The strategy cannot work with this model, device or option value. The case ends as `unsupported`.
// The message gives the reason, as a sentence for the user.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option's value is wrong in a way that only the plugin can detect. Examples are a missing file
// and a tensor of another shape. The case ends as `unsupported`.
struct OptionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace peakbench
