// What the program's storages are: parameters and buffers of its models, what its optimizers keep,
// what its models are given. The caller holds Python's lock.
#pragma once

#include "tracer/python_objects.h"

namespace peakbench::tracer {

// Of Python's side (python/peakbench_tracing.py), kept for as long as the process runs.
struct PythonSide {
  void *tensor, *parameter, *module;  // types
  void* parts_of;                     // the plain tensors that one of a subclass is made of
};
void set_python_side(const PythonSide& side);

// A model's module is called: its number, and that of all in it, are the numbers of their paths.
std::int32_t number_of_module(void* module, bool is_outermost);

// "[2, 3]" in the journal.
std::int32_t text_of_shape(const at::Tensor& tensor);

// Names the parameters and buffers of an outermost module; false where it has no parameter.
bool name_model(void* module);
void name_inputs(void* value);

// An optimizer's step begins: names what it reads, and gives the optimizer's number.
std::int32_t name_before_update(void* optimizer);
// It has ended, or raised, as when memory ran out in it: names the state it has made until then.
void name_updated();

}  // namespace peakbench::tracer
