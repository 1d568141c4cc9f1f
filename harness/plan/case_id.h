// The text forms of what identifies a case.
#pragma once

#include <string>

#include "result/selection_text.h"

namespace peakbench::plan {

using result::selection_text;
using result::stack_text;

// MODEL[,options]/STACK/DEVICE/DTYPE/bN[/sN][/ALLOCATOR][/torch-V][/build-NAME]: what the axes say,
// in their order.
std::string case_id(const result::Setting& setting);
// What it would be if the run had one release of PyTorch and one build.
std::string id_in_one_build(result::Setting setting);

// A safe file name of at most 100 characters: what can be read of the id, then eight hexadecimal
// digits of its hash. The same for the same id on every machine, different for ids that read the
// same.
std::string slug(const std::string& case_id);

}  // namespace peakbench::plan
