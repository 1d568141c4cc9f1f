// The text forms of what identifies a case.
#pragma once

#include <string>
#include <vector>

#include "result/case.h"

namespace peakbench::plan {

// `lora,rank=16`: defaults are not in a Selection, so not here. Values that hold ',', '+', '"' or
// blanks are quoted.
std::string selection_text(const result::Selection& selection);
std::string stack_text(const std::vector<result::Selection>& strategies);

// MODEL[,options]/STACK/DEVICE/DTYPE/bN[/sN], from the other fields of the spec.
std::string case_id(const result::CaseSpec& spec);

// A safe file name of at most 100 characters: what can be read of the id, then eight hexadecimal
// digits of its hash. The same for the same id on every machine, different for ids that read the
// same.
std::string slug(const std::string& case_id);

}  // namespace peakbench::plan
