#pragma once

#include <string>
#include <utility>
#include <vector>

#include "records/setting.h"

namespace peakbench::planning {

// The grammar NAME,key=value,... and stacks NAME,...+NAME,... as users type them. Manifests are not
// read.
//
// Double quotes around a value allow ',' and '+': weights="/models/a,b.safetensors".

struct TypedSelection {
  std::string id;
  std::vector<std::pair<std::string, std::string>> options;  // in the order typed, each name once
};

// Throws ConfigError that shows the text and the column (from 1) of what is wrong.
TypedSelection parse_selection(const std::string& text);
std::vector<TypedSelection> parse_stack(const std::string& text);

// The text forms of what identifies a case.

using records::selection_text;
using records::stack_text;

// MODEL[,options]/STACK/DEVICE/DTYPE/bN[/sN][/ALLOCATOR][/torch-V][/build-NAME]: what the axes say,
// in their order.
std::string case_id(const records::Setting& setting);
// What it would be if the run had one release of PyTorch and one build.
std::string id_in_one_build(records::Setting setting);

// A safe file name of at most 100 characters: what can be read of the id, then eight hexadecimal
// digits of its hash. The same for the same id on every machine, different for ids that read the
// same.
std::string slug(const std::string& case_id);

}  // namespace peakbench::planning
