// Python's garbage collector, which must run when it would without the tracer: what it frees may
// hold memory of the card. It runs when enough objects were made, and counts those that are alive.
#pragma once

namespace peakbench::interpreter {

// Finds where the collector counts. `first`, `second`, `third` are its thresholds now: numbers that
// nothing else has. Where it is not found, what the tracer keeps is counted as the program's.
void find_collector_count(int first, int second, int third);

// While it lives the collector does not run: what is made and given back changes nothing.
class CollectorHeld {
 public:
  CollectorHeld();
  CollectorHeld(const CollectorHeld&) = delete;
  CollectorHeld& operator=(const CollectorHeld&) = delete;
  ~CollectorHeld();

 private:
  bool ran_;
};

// What is made while it lives, and kept, or dropped that was kept so, is not counted.
class UncountedObjects {
 public:
  UncountedObjects();
  UncountedObjects(const UncountedObjects&) = delete;
  UncountedObjects& operator=(const UncountedObjects&) = delete;
  ~UncountedObjects();

 private:
  int count_;
};

// The collector's count is to be this, where it is known.
void set_collector_count(int count);

}  // namespace peakbench::interpreter
