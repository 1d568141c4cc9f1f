// The grammar NAME,key=value,... and stacks NAME,...+NAME,... as people type them. No manifest is
// looked at.
//
// A value may stand in double quotes to hold ',' or '+': weights="/models/a,b.safetensors".
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace peakbench::plan {

struct TypedSelection {
  std::string id;
  std::vector<std::pair<std::string, std::string>> options;  // in the order typed, each name once
};

// Throws ConfigError that shows the text and the column (from 1) of what is wrong.
TypedSelection parse_selection(const std::string& text);
std::vector<TypedSelection> parse_stack(const std::string& text);

}  // namespace peakbench::plan
