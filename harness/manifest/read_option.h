// One option of a manifest's entry.
#pragma once

#include "json/fields.h"
#include "manifest/manifest.h"
#include "manifest/problems.h"

namespace peakbench::manifest {

// Whatever is wrong with it goes to `problems`; the option is then not whole.
Option read_option(const Fields& fields, Problems& problems);

}  // namespace peakbench::manifest
