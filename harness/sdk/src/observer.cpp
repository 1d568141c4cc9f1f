#include "peakbench/observer.h"

namespace peakbench {
namespace {
Observer* the_observer = nullptr;  // set once by the worker before any model exists
}

Observer* observer() { return the_observer; }

void set_observer(Observer* observer) { the_observer = observer; }

}  // namespace peakbench
