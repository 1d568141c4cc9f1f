// A training strategy: fills slots of the recipe and adds wrappers. What it promises about training
// is in its manifest.
#pragma once

#include "peakbench/errors.h"
#include "peakbench/recipe.h"

namespace peakbench {

class Strategy {
 public:
  virtual ~Strategy() = default;
  // Called once, after the model is built and before its parameters are collected. Fills the recipe
  // and does nothing else: the model is changed by the transforms it puts there. May throw
  // Unsupported.
  virtual void apply(Recipe& recipe, Model& model) = 0;
};

struct StrategyContext {
  std::string id;
  Options options;
};

}  // namespace peakbench
