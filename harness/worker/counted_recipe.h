// A recipe whose every object counts the calls into it and names them when they fail.
#pragma once

#include "worker/contributions.h"

namespace peakbench::worker {

// `contributions` knows who put what there and must outlive the recipe. `model`: whose blocks the
// block wrappers run.
Recipe counted(Recipe recipe, Contributions& contributions, const Owner& model);

}  // namespace peakbench::worker
