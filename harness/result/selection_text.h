// The text form of what was chosen, the same in case ids, reports and messages.
#pragma once

#include <string>
#include <vector>

#include "result/setting.h"

namespace peakbench::result {

// `lora,rank=16`: defaults are not in a Selection, so not here. Values that hold ',', '+', '"' or
// blanks are quoted. Whatever the names hold, valid UTF-8 or not, nothing is thrown.
std::string selection_text(const Selection& selection);
std::string stack_text(const std::vector<Selection>& strategies);

// A stack as a case id names it: `baseline` only alone or with options.
std::vector<Selection> without_plain_baseline(std::vector<Selection> strategies);

}  // namespace peakbench::result
