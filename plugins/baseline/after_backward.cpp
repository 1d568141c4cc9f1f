#include "after_backward.h"

namespace peakbench::baseline {

void AfterBackward::after_backward(Training& training) { training.update_all(); }

}  // namespace peakbench::baseline
