// How much room a text takes on a terminal.
#pragma once

#include <string>

namespace peakbench {

// Columns that a terminal uses for the text: wide characters two, combining ones none.
int display_width(const std::string& text);
// The text cut to fit.
std::string fit(const std::string& text, int columns);

}  // namespace peakbench
