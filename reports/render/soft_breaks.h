// Where a long word of a page may break: browsers break `train.py:42` or `encoder.layers.0.mlp`
// nowhere, or, told to, at any letter.
#pragma once

#include <string>

namespace peakbench::reports {

// The same page with a `<wbr>` behind separators and before capitals of words of more than 20
// characters, and in runs of 20 characters without either. Text alone: tags, scripts, styles and
// pictures stay as they are.
std::string with_soft_breaks(const std::string& html);

}  // namespace peakbench::reports
