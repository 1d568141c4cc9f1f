#include "peakbench/observer.h"

namespace peakbench {
namespace {
Observer* the_observer = nullptr;  // set once by the worker before any model exists
ModuleObserver* the_module_observer = nullptr;
}  // namespace

Observer* observer() { return the_observer; }

void set_observer(Observer* observer) {
  the_observer = observer;
  the_module_observer = observer;
}

ModuleObserver* module_observer() { return the_module_observer; }

void set_module_observer(ModuleObserver* observer) { the_module_observer = observer; }

}  // namespace peakbench
