// Arithmetic for templates: + - * / and parentheses over decimal numbers. Places and sizes of a
// drawing are worked out in the template, so that all looks stay there.
#pragma once

#include <string>

namespace peakbench::reports {

// Throws std::invalid_argument that says what was read and where it stopped.
double evaluate(const std::string& expression);

}  // namespace peakbench::reports
