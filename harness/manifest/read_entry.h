// One entry of a manifest: every field checked, none ignored.
#pragma once

#include "json/fields.h"
#include "manifest/manifest.h"
#include "manifest/problems.h"

namespace peakbench::manifest {

// A missing or unknown field, a wrong type, a word that is not in vocabulary.h, a name that is
// there twice, a range that holds nothing, a default that its option would refuse: all go to
// `problems`, and the entry is then not whole.
Entry read_entry(const Fields& fields, Kind kind, Problems& problems);

}  // namespace peakbench::manifest
