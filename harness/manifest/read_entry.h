// One entry of a manifest: every field checked, none ignored.
#pragma once

#include "manifest/manifest.h"
#include "result/fields.h"

namespace peakbench::manifest {

// Throws result::FieldError: a missing or unknown field, a wrong type, a default that its option
// would refuse.
Entry read_entry(const result::Fields& fields, Kind kind);

// The slots of a recipe, each with one owner.
const std::vector<std::string>& slots();
// The lists of a recipe that strategies add to.
const std::vector<std::string>& wrappers();
// What a strategy does or needs that decides what it can be stacked with.
const std::vector<std::string>& capabilities();

}  // namespace peakbench::manifest
