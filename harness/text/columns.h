// How much room a text takes on a terminal.
#pragma once

#include <string>

namespace peakbench {

// Columns that a terminal uses for the text: wide characters two, combining ones none.
int display_width(const std::string& text);
// The text cut to fit.
std::string fit(const std::string& text, int columns);
// The same cut in the middle: names of cases and stacks differ in their ends as often as in their
// beginnings, "checkpointing+…+adam8bit".
std::string fit_middle(const std::string& text, int columns);

}  // namespace peakbench
