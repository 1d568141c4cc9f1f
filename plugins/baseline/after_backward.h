// The ordinary schedule: one update of all parameters once backward has finished.
#pragma once

#include "peakbench/recipe.h"

namespace peakbench::baseline {

class AfterBackward : public Schedule {
 public:
  void after_backward(Training& training) override;
};

}  // namespace peakbench::baseline
