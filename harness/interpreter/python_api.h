#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace peakbench::interpreter {

// Python's C interface, found in the process itself: one library serves every version of Python,
// and is built without any. Objects are `void*`.

struct Python {
  int (*is_initialized)();
  int (*is_finalizing)();
  int (*is_held)();
  int (*ensure)();
  void (*release)(int);
  void* (*thread)();  // this thread's state, or null
  void (*keep)(void*);
  void (*drop)(void*);
  void (*clear_error)();
  void (*fetch_error)(void**, void**, void**);
  void (*restore_error)(void*, void*, void*);

  // Frames as objects, and code.
  void* (*thread_frame)(void*);
  void* (*back)(void*);
  void* (*code)(void*);
  int (*line)(void*);
  int (*instruction)(void*);  // from 3.11 on
  int (*line_at)(void*, int);
  void* code_type;

  void* (*attribute)(void*, const char*);
  int (*is_true)(void*);
  int (*is_instance_of)(void*, void*);  // of types: whether the first derives from the second
  int (*differs)(void*, void*, int);
  void* (*text)(void*);
  const char* (*utf8)(void*);
  unsigned long long (*number)(void*);
  void* (*call)(void*, void* const*, std::size_t, void*);
  void* (*call_with)(void*, ...);
  void* (*call_format)(void*, const char*, ...);
  void* (*iterator)(void*);
  void* (*next)(void*);
  void* (*new_reference)(void*, void*);   // a weak one
  void* (*referent)(void*);               // borrowed; of a weak reference, up to 3.14
  int (*strong_referent)(void*, void**);  // from 3.13 on
  int (*dict_next)(void*, std::ptrdiff_t*, void**, void**);
  void* (*dict_item)(void*, const char*);
  void* (*new_dict)();
  void (*clear_dict)(void*);
  void* (*dict_at)(void*, void*);
  void* (*of_system)(const char*);  // borrowed: sys.NAME
  std::ptrdiff_t (*list_size)(void*);
  void* (*list_item)(void*, std::ptrdiff_t);
  std::ptrdiff_t (*tuple_size)(void*);
  void* (*tuple_item)(void*, std::ptrdiff_t);
  void *dict_type, *list_type, *tuple_type, *function_type;
  void* none;

  // Of the collector; from 3.10 on.
  int (*disable_collector)();
  int (*enable_collector)();
  void* (*interpreter)();

  // Code from its text, and what evaluates frames.
  void* (*compile)(const char*, const char*, int);
  void* (*evaluate)(void*, void*, void*);
  void* (*evaluator)(void*);
  void (*set_evaluator)(void*, void*);
  void* plain_evaluator;

  bool knows_columns() const {
    return instruction && call_with && call_format && next && number && tuple_item && dict_item &&
           new_dict && clear_dict && interpreter && compile && evaluate && evaluator &&
           set_evaluator && plain_evaluator;
  }
  bool knows_frames() const {
    return is_initialized && is_held && ensure && release && thread && thread_frame && back &&
           code && line && attribute && utf8 && keep && drop && clear_error;
  }
};

const Python& python();

// Whether the calling thread has Python's lock.
bool holds_python();
// Whether the process has an interpreter that is being finalized.
bool python_is_ending();

inline void* type_of(void* object) {
  return *reinterpret_cast<void**>(static_cast<char*>(object) + sizeof(void*));
}
// Whether it is one of the type, or of one that derives from it in C: asks no metaclass.
bool is_a(void* object, void* type);

// An object that is given back at the end of its scope; null where Python raised, and the error is
// gone then.
class Owned {
 public:
  explicit Owned(void* object) : object_(object) {
    if (!object) python().clear_error();
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (object_) python().drop(object_);
  }
  void* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  void* object_;
};

inline Owned attribute(void* object, const char* name) {
  return Owned(python().attribute(object, name));
}
// Of a str; of anything else, and of what is no UTF-8, `otherwise`.
std::string utf8_of(void* object, const char* otherwise);

// Python's garbage collector, which must run when it would without the tracer: what it frees may
// hold memory of the card. It runs when enough objects were made, and counts those that are alive.

// Finds the counters of the collector. `first`, `second`, `third` are its current thresholds:
// unique numbers. If it is not found, objects of the tracer count as the program's.
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
