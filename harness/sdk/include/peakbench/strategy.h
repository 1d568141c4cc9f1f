// A training strategy is a function: it fills slots of the recipe and adds wrappers. What it
// promises about training is in its manifest.
//
//   void apply(const StrategyContext& context, Recipe& recipe, Model& model);
//
// Called once, after the model is built and before its parameters are collected, with the recipe as
// the strategies before it in the stack left it. Fills the recipe and does nothing else: the model
// is changed by the transforms it puts there. May throw Unsupported or OptionError. What it puts
// into the recipe may outlive `context`, and the plugin's library stays loaded as long.
#pragma once

#include <string>

#include "peakbench/errors.h"
#include "peakbench/options.h"
#include "peakbench/recipe.h"

namespace peakbench {

struct StrategyContext {
  std::string id;   // which of the library's strategies
  Options options;  // all that its manifest declares
};

}  // namespace peakbench
