// A recipe whose every object counts the calls into it and names them when they fail.
#pragma once

#include "worker/recipe_parts.h"

namespace peakbench::worker {

// `parts` knows who put what there and must outlive the recipe. `model`: whose blocks the block
// wrappers run.
Recipe counted(Recipe recipe, RecipeParts& parts, const Owner& model);

}  // namespace peakbench::worker
